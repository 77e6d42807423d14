#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/engine_request.h"
#include "engine/model_text.h"
#include "server/api_error.h"
#include "server/chat_schema.h"
#include "server/completion_schema.h"
#include "server/sampling_defaults.h"
#include "text/answer_pieces.h"
#include "text/output_parser.h"

// From an OpenAI request to an answer in OpenAI's form, without a socket, a file or a clock:
//
//   const auto request = parse_chat_request(body);          // or parse_completion_request; a line
//                                                           // of a batch: parse_batch_line
//   if (!serves(request->answer.model)) ...                 // the caller's to check
//   auto prepared = prepare(*request, model_text, facts, base::local_calendar());
//   AnswerCollector collector(prepared->form, {.id = "17", .model = name, .created = unix_time});
//   for (size_t i = 0; i < prepared->choices.size(); ++i) {
//     engine.submit(std::move(prepared->choices[i]), [i, &queue](engine::EngineUpdate&& update) {
//       queue.push({i, std::move(update)});                 // on the engine's thread
//     });
//   }
//   while (!collector.done()) {                             // on one thread of the caller's
//     auto [choice, update] = queue.pop();
//     collector.add(choice, std::move(update));
//   }
//   const ApiResult<json::object> answer = collector.body();
//
// What fails on the way is an ApiError: a status, and error_body() for the client. A choice that
// submit() refuses is collector.refuse(choice, error): the other choices are cancelled then.
namespace ingot::server {

// What requests are checked against and completed with.
struct ModelFacts {
  int64_t vocab_size = 0;
  int64_t num_context_tokens = 0;  // prompt and answer together; Engine::max_request_tokens()
  SamplingDefaults sampling = {};
  uint64_t seed = 0;  // of a request that has none
};

// A prompt as answers show it.
struct ShownPrompt {
  std::vector<int32_t> ids = {};
  size_t num_prefix_ids = 0;  // the first of them, that the text does not have
  std::string text = {};      // empty where no tokenizer could tell
};

// What has to be known to read the engine's updates and to write the answer.
struct AnswerForm {
  Endpoint endpoint = Endpoint::kChatCompletions;
  const text::Tokenizer* tokenizer = nullptr;  // null: answers are ids
  int32_t num_choices = 0;                     // in all
  int32_t num_choices_per_prompt = 1;
  text::OutputParserOptions parser = {};  // of chats
  text::AnswerStops stops = {};
  std::vector<int32_t> stop_token_ids = {};
  std::optional<int32_t> top_logprobs = {};     // of the answer's tokens, where wanted
  std::optional<int32_t> prompt_logprobs = {};  // of the prompt's, where wanted as such
  bool echo = false;
  std::vector<ShownPrompt> prompts = {};  // where echo or prompt_logprobs shows them
  bool stream = false;
  bool include_usage = false;
};

// A request, ready for the engine.
struct PreparedRequest {
  AnswerForm form = {};
  // In order of "index": all choices of the first prompt, then those of the next. Choice i of a
  // prompt has the seed i steps further. Where prompt logprobs are wanted, the first choice of each
  // prompt gives them for all.
  std::vector<engine::EngineRequest> choices = {};
};

// `model_text` may be null: then only prompts of token ids can be continued, and nothing that needs
// text (stop strings) is possible. Otherwise it has to outlive all use of the form. `now` is the
// local time, for templates that print the date. Errors: status 400.
ApiResult<PreparedRequest> prepare(const ChatRequest& request, const engine::ModelText* model_text,
                                   const ModelFacts& facts, const std::tm& now);
ApiResult<PreparedRequest> prepare(const CompletionRequest& request,
                                   const engine::ModelText* model_text, const ModelFacts& facts);

// A request of either endpoint.
using ApiRequest = std::variant<ChatRequest, CompletionRequest>;
const AnswerFields& answer_fields(const ApiRequest& request);
ApiResult<PreparedRequest> prepare(const ApiRequest& request, const engine::ModelText* model_text,
                                   const ModelFacts& facts, const std::tm& now);

}  // namespace ingot::server
