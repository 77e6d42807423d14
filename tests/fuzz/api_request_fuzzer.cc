// Bodies of requests, from text to the answer: what parses and can be prepared is sound for the
// engine, and its answer is JSON; what is refused says why.
//
// The first byte chooses the endpoint and whether there is a tokenizer.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "server/api_fixture.h"
#include "text/utf8.h"

namespace {

using ingot::engine::EngineRequest;
using ingot::server::ApiError;
using ingot::server::ApiResult;
using ingot::server::FakeAnswer;
using ingot::server::ModelFacts;
using ingot::server::PreparedRequest;

// Collecting takes time for each.
constexpr size_t kChoicesMax = 4;

void check_error(const ApiError& error) {
  CHECK(error.status == 400 && !error.message.empty());
  const std::string body = ingot::base::compact_json(ingot::server::error_body(error));
  CHECK(!ingot::text::find_invalid_utf8(body), body);
  CHECK(ingot::base::parse_json(body, "error").has_value(), body);
}

void check_request(const EngineRequest& request, const ModelFacts& facts) {
  CHECK(!request.prompt.empty());
  for (const int32_t id : request.prompt) CHECK(id >= 0 && id < facts.vocab_size);
  for (const int32_t id : request.stop_token_ids) CHECK(id >= 0 && id < facts.vocab_size);
  for (const std::string& stop : request.stop_strings) CHECK(!stop.empty());
  CHECK(ingot::engine::check(request.sampling, facts.vocab_size).has_value());
  const auto num_tokens = static_cast<int64_t>(request.prompt.size());
  CHECK(num_tokens + request.max_tokens.value_or(1) <= facts.num_context_tokens);
  CHECK(!request.wants_prompt_logprobs || request.sampling.num_top_logprobs);
}

// The answer repeats the end of the prompt.
void check_answer(const PreparedRequest& prepared) {
  std::vector<FakeAnswer> answers;
  for (const EngineRequest& request : prepared.choices) {
    FakeAnswer& answer = answers.emplace_back();
    const size_t size = std::min<size_t>(request.prompt.size(), 20);
    answer.tokens.assign(request.prompt.end() - static_cast<int64_t>(size), request.prompt.end());
    // Ids that no token has are never drawn.
    std::erase_if(answer.tokens, [](int32_t id) { return id >= 277; });
    answer.step = 1 + answers.size() % 3;
  }
  const auto body = ingot::server::collect(prepared, answers);
  CHECK(body.has_value());
  const std::string text = ingot::base::compact_json(*body);
  CHECK(!ingot::text::find_invalid_utf8(text), text);
  CHECK(ingot::base::parse_json(text, "answer").has_value(), text);
}

void run(const ApiResult<PreparedRequest>& prepared, const ModelFacts& facts) {
  if (!prepared) return check_error(prepared.error());
  CHECK(static_cast<size_t>(prepared->form.num_choices) == prepared->choices.size());
  for (const EngineRequest& request : prepared->choices) check_request(request, facts);
  if (prepared->choices.size() <= kChoicesMax) check_answer(*prepared);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ingot::engine::ModelText model_text = ingot::server::small_model_text();
  static const ModelFacts facts = ingot::server::small_model_facts();
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  const ingot::engine::ModelText* text = (data[0] & 2) != 0 ? nullptr : &model_text;
  if ((data[0] & 1) != 0) {
    const auto request = ingot::server::parse_chat_request(body);
    if (!request) return check_error(request.error()), 0;
    run(ingot::server::prepare(*request, text, facts, {}), facts);
  } else {
    const auto request = ingot::server::parse_completion_request(body);
    if (!request) return check_error(request.error()), 0;
    run(ingot::server::prepare(*request, text, facts), facts);
  }
  return 0;
}
