#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine_request.h"
#include "server/api_error.h"
#include "server/choice_reader.h"
#include "server/prepared_request.h"

namespace ingot::server {

// What an answer is known by. Nothing of it is made up here: the caller has the clock.
struct AnswerIdentity {
  std::string id = {};     // unique among answers; its prefix ("chatcmpl-", "cmpl-") is added
  std::string model = {};  // as it is served
  int64_t created = 0;     // seconds of Unix time
};

// Takes the engine's updates of all choices of a request and gives the whole answer: the body of a
// response to /v1/chat/completions ("chat.completion") or /v1/completions ("text_completion").
// prepared_request.h shows its use. One thread at a time.
class AnswerCollector {
 public:
  // The form's tokenizer must outlive it.
  AnswerCollector(AnswerForm form, AnswerIdentity identity);

  // REQUIRES: choice < num_choices, and it has neither been refused nor reported yet.
  void add(size_t choice, engine::EngineUpdate update);
  // The engine did not take a choice: it counts as ended. REQUIRES: as for add.
  void refuse(size_t choice, ApiError error);

  // Whether every choice has ended.
  bool done() const { return num_ended_ == choices_.size(); }
  // What is wrong so far, and then the other choices need not go on. Null: nothing.
  const ApiError* error() const { return error_ ? &*error_ : nullptr; }

  // Beside OpenAI's fields "reasoning_content", "stop_reason" (the string or id that ended a
  // choice, as in vLLM), "token_ids" of completions, "prompt_logprobs" where asked, "timings". A
  // call that was cut off is left out. Errors: a choice that failed (500), was not finished in time
  // (504) or was cancelled (499) leaves the whole request without an answer.
  // REQUIRES: done().
  ApiResult<base::json::object> body() const;

 private:
  struct ToolCall {
    std::string name;
    std::string arguments;  // a JSON object
    bool is_whole = false;
  };
  struct Choice {
    ChoiceReader reader;
    std::string reasoning = {};
    std::string content = {};
    std::vector<ToolCall> tool_calls = {};
    std::vector<int32_t> ids = {};
    std::vector<engine::TokenLogprobs> logprobs = {};
    std::vector<engine::TokenLogprobs> prompt_logprobs = {};
    engine::EngineReport report = {};
    bool has_ended = false;
  };

  static void say(Choice& choice, std::vector<text::OutputEvent> events);
  void fail(ApiError error);
  base::json::object chat_choice(size_t index) const;
  base::json::object text_choice(size_t index) const;
  base::json::value chat_logprobs(const Choice& choice) const;
  base::json::value text_logprobs(size_t index) const;
  base::json::array tool_calls_json(size_t index) const;
  base::json::value stop_reason(const Choice& choice) const;
  const Choice& first_of_prompt(size_t index) const;

  const AnswerForm form_;
  const AnswerIdentity identity_;
  std::vector<Choice> choices_;
  size_t num_ended_ = 0;
  std::optional<ApiError> error_;  // the gravest so far
};

}  // namespace ingot::server
