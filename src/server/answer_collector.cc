#include "server/answer_collector.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/random.h"
#include "server/answer_usage.h"
#include "server/token_json.h"

namespace ingot::server {
namespace {

namespace json = base::json;
using engine::EngineReport;
using engine::EngineUpdate;
using scheduler::FinishReason;
using text::OutputEvent;

// Not part of HTTP: what nginx logs when the client went away.
constexpr int kStatusCancelled = 499;

// Absent: the choice has an answer.
std::optional<ApiError> error_of(const EngineReport& report) {
  switch (report.reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      return std::nullopt;
    case FinishReason::kCancelled:
      return ApiError{.status = kStatusCancelled,
                      .message = "the request was cancelled",
                      .type = "cancelled",
                      .code = "cancelled"};
    case FinishReason::kDeadline:
      return ApiError{.status = 504,
                      .message = "the request was not finished by its deadline",
                      .type = "timeout",
                      .code = "deadline_exceeded"};
    case FinishReason::kError:
      return ApiError{
          .status = 500, .message = report.error, .type = "server_error", .code = "engine_error"};
  }
  return std::nullopt;
}

// A failed choice makes the caller cancel the others, so that an end by cancellation says least.
int gravity(const ApiError& error) { return error.status == kStatusCancelled ? 0 : 1; }

template <typename T>
void append(std::vector<T>& list, std::vector<T> more) {
  std::ranges::move(more, std::back_inserter(list));
}

}  // namespace

AnswerCollector::AnswerCollector(AnswerForm form, AnswerIdentity identity)
    : form_(std::move(form)), identity_(std::move(identity)) {
  CHECK(form_.num_choices > 0);
  choices_.reserve(static_cast<size_t>(form_.num_choices));
  for (int32_t i = 0; i < form_.num_choices; ++i) {
    choices_.push_back({.reader = ChoiceReader(form_)});
  }
}

void AnswerCollector::add(size_t index, EngineUpdate update) {
  CHECK(index < choices_.size() && !choices_[index].has_ended);
  Choice& choice = choices_[index];
  if (auto events = choice.reader.read(update.tokens)) {
    say(choice, std::move(*events));
  } else {
    fail({.status = 500,
          .message = events.error().message,
          .type = "server_error",
          .code = "engine_error"});
  }
  append(choice.ids, std::move(update.tokens));
  if (form_.top_logprobs) append(choice.logprobs, std::move(update.logprobs));
  append(choice.prompt_logprobs, std::move(update.prompt_logprobs));
  if (!update.report) return;
  say(choice, choice.reader.finish());
  choice.report = std::move(*update.report);
  choice.has_ended = true;
  ++num_ended_;
  if (auto error = error_of(choice.report)) fail(std::move(*error));
}

void AnswerCollector::refuse(size_t index, ApiError error) {
  CHECK(index < choices_.size() && !choices_[index].has_ended);
  Choice& choice = choices_[index];
  choice.has_ended = true;
  ++num_ended_;
  fail(std::move(error));
}

void AnswerCollector::fail(ApiError error) {
  if (!error_ || gravity(error) > gravity(*error_)) error_ = std::move(error);
}

void AnswerCollector::say(Choice& choice, std::vector<OutputEvent> events) {
  using enum OutputEvent::Kind;
  for (OutputEvent& event : events) {
    switch (event.kind) {
      case kReasoning:
        choice.reasoning += event.text;
        break;
      case kContent:
        choice.content += event.text;
        break;
      case kToolCallBegin:
        choice.tool_calls.push_back({.name = std::move(event.text), .arguments = {}});
        break;
      case kToolCallArguments:
        choice.tool_calls.back().arguments += event.text;
        break;
      case kToolCallEnd:
        choice.tool_calls.back().is_whole = true;
        break;
    }
  }
}

ApiResult<json::object> AnswerCollector::body() const {
  CHECK(done());
  if (error_) return std::unexpected(*error_);
  const bool is_chat = form_.endpoint == Endpoint::kChatCompletions;
  json::array choices;
  std::vector<EngineReport> reports;
  int64_t num_reasoning_tokens = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    choices.push_back(is_chat ? chat_choice(i) : text_choice(i));
    reports.push_back(choices_[i].report);
    num_reasoning_tokens += choices_[i].reader.num_reasoning_tokens();
  }
  json::object body{{"id", (is_chat ? "chatcmpl-" : "cmpl-") + identity_.id},
                    {"object", is_chat ? "chat.completion" : "text_completion"},
                    {"created", identity_.created},
                    {"model", identity_.model},
                    {"choices", std::move(choices)}};
  if (is_chat && form_.prompt_logprobs) {
    body["prompt_logprobs"] = prompt_logprobs_json(
        form_.tokenizer, choices_.front().prompt_logprobs, *form_.prompt_logprobs);
  }
  body["usage"] = usage_json(reports, form_.num_choices_per_prompt, num_reasoning_tokens);
  body["timings"] = timings_json(reports);
  return body;
}

json::object AnswerCollector::chat_choice(size_t index) const {
  const Choice& choice = choices_[index];
  json::array tool_calls = tool_calls_json(index);
  json::object message{{"role", "assistant"}};
  // OpenAI has no content beside calls where there is none, and an empty one otherwise.
  message["content"] =
      tool_calls.empty() ? json::value(choice.content) : text_or_null(choice.content);
  message["reasoning_content"] = text_or_null(choice.reasoning);
  const bool has_calls = !tool_calls.empty();
  if (has_calls) message["tool_calls"] = std::move(tool_calls);
  const bool is_stop = choice.report.reason == FinishReason::kStop;
  return {{"index", index},
          {"message", std::move(message)},
          {"logprobs", chat_logprobs(choice)},
          {"finish_reason", is_stop ? (has_calls ? "tool_calls" : "stop") : "length"},
          {"stop_reason", stop_reason(choice)}};
}

json::object AnswerCollector::text_choice(size_t index) const {
  const Choice& choice = choices_[index];
  const size_t prompt = index / static_cast<size_t>(form_.num_choices_per_prompt);
  json::object result{
      {"index", index},
      {"text", (form_.echo ? form_.prompts[prompt].text : std::string()) + choice.content},
      {"token_ids", json::array(choice.ids.begin(), choice.ids.end())},
      {"logprobs", text_logprobs(index)},
      {"finish_reason", choice.report.reason == FinishReason::kStop ? "stop" : "length"},
      {"stop_reason", stop_reason(choice)}};
  if (form_.prompt_logprobs) {
    result["prompt_logprobs"] = prompt_logprobs_json(
        form_.tokenizer, first_of_prompt(index).prompt_logprobs, *form_.prompt_logprobs);
  }
  return result;
}

json::value AnswerCollector::chat_logprobs(const Choice& choice) const {
  if (!form_.top_logprobs) return nullptr;
  json::array content;
  for (const engine::TokenLogprobs& logprobs : choice.logprobs) {
    content.push_back(chat_logprob(form_.tokenizer, logprobs, *form_.top_logprobs));
  }
  return json::object{{"content", std::move(content)}, {"refusal", nullptr}};
}

json::value AnswerCollector::text_logprobs(size_t index) const {
  if (!form_.top_logprobs) return nullptr;
  const Choice& choice = choices_[index];
  std::vector<TextTokens> parts;
  if (form_.echo) {
    const ShownPrompt& prompt =
        form_.prompts[index / static_cast<size_t>(form_.num_choices_per_prompt)];
    parts.push_back({.ids = prompt.ids,
                     .logprobs = first_of_prompt(index).prompt_logprobs,
                     .num_prefix_ids = prompt.num_prefix_ids});
  }
  parts.push_back({.ids = choice.ids, .logprobs = choice.logprobs});
  return completion_logprobs(form_.tokenizer, parts, *form_.top_logprobs);
}

json::array AnswerCollector::tool_calls_json(size_t index) const {
  const base::RandomStream ids =
      base::random_stream(base::fnv1a64(identity_.id), "tool call " + std::to_string(index));
  json::array calls;
  for (const ToolCall& call : choices_[index].tool_calls) {
    if (!call.is_whole) continue;
    calls.push_back(json::object{
        {"id", fmt::format("call_{:016x}", ids.word(calls.size()))},
        {"type", "function"},
        {"function", json::object{{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return calls;
}

// The string, or an id that the request named. The model's own end is no reason.
json::value AnswerCollector::stop_reason(const Choice& choice) const {
  const EngineReport& report = choice.report;
  if (report.reason != FinishReason::kStop) return nullptr;
  if (report.stopped_by_string)
    return json::value(form_.stops.strings.at(*report.stopped_by_string));
  const bool was_named =
      report.stopped_by_id &&
      std::ranges::find(form_.stop_token_ids, *report.stopped_by_id) != form_.stop_token_ids.end();
  return was_named ? json::value(*report.stopped_by_id) : nullptr;
}

const AnswerCollector::Choice& AnswerCollector::first_of_prompt(size_t index) const {
  return choices_[index - index % static_cast<size_t>(form_.num_choices_per_prompt)];
}

}  // namespace ingot::server
