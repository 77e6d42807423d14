#include "cli/conversation.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/log.h"
#include "base/progress.h"
#include "base/provenance.h"
#include "cli/answer_printer.h"
#include "cli/generation_report.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "server/chat_prompt.h"
#include "text/answer_reader.h"
#include "text/utf8.h"

namespace ingot::cli {
namespace {

namespace json = base::json;
using text::OutputEvent;
using text::TemplateValue;

}  // namespace

void Conversation::Answer::add(const std::vector<OutputEvent>& events) {
  using enum OutputEvent::Kind;
  for (const OutputEvent& event : events) {
    switch (event.kind) {
      case kReasoning:
        reasoning += event.text;
        break;
      case kContent:
        content += event.text;
        break;
      case kToolCallBegin:
        tool_calls.push_back({.name = event.text});
        break;
      case kToolCallArguments:
        tool_calls.back().arguments += event.text;
        break;
      case kToolCallEnd:
        tool_calls.back().whole = true;
        break;
    }
  }
}

base::Status Conversation::reply(std::string_view message) {
  if (const auto invalid = text::find_invalid_utf8(message)) {
    return base::error("byte {} of the message is not UTF-8; convert it", *invalid);
  }
  messages_.push_back(json::object{{"role", "user"}, {"content", message}});
  auto next = prompt(request());
  const auto answer = next ? answer_prompt(std::move(*next)) : std::unexpected(next.error());
  if (!answer || answer->report.usage.num_output_tokens == 0) {
    messages_.pop_back();  // failed, or stopped before it was read: as if it had not been said
    return answer ? base::Status{} : std::unexpected(answer.error());
  }
  messages_.push_back(json::object{{"role", "assistant"},
                                   {"content", answer->content},
                                   {"reasoning_content", answer->reasoning}});
  return {};
}

base::Status Conversation::answer(ChatRequest request) {
  TRY(answer_prompt(TRY(prompt(std::move(request)))));
  return {};
}

base::Result<size_t> Conversation::num_tokens() const {
  return TRY(prompt(request()))
  .ids.size();
}

// All that was said.
ChatRequest Conversation::request() const {
  json::array messages;
  if (!system_.empty()) {
    messages.push_back(json::object{{"role", "system"}, {"content", system_}});
  }
  messages.insert(messages.end(), messages_.begin(), messages_.end());
  ChatRequest request;
  request.inputs.messages = TemplateValue::from_json(messages);
  return request;
}

// A conversation as the model will see it.
base::Result<Conversation::Prompt> Conversation::prompt(ChatRequest request) const {
  text::ChatInputs& inputs = request.inputs;
  if (options_.thinking != "auto") {
    for (const char* name : {"enable_thinking", "thinking"}) {
      inputs.extra.emplace_back(name, TemplateValue::boolean(options_.thinking == "on"));
    }
  }
  if (!options_.reasoning_effort.empty()) {
    inputs.extra.emplace_back("reasoning_effort", TemplateValue::data(options_.reasoning_effort));
  }
  server::ChatPrompt rendered = TRY(server::render_chat(text_, inputs, base::local_calendar()));
  return Prompt{.ids = std::move(rendered.ids),
                .ends_in_reasoning = rendered.ends_in_reasoning,
                .tools = std::move(request.tools)};
}

base::Result<Conversation::Answer> Conversation::answer_prompt(Prompt next) {
  if (static_cast<int64_t>(next.ids.size()) >= num_tokens_max()) {
    return base::error(
        "the conversation has {} tokens, which leaves no room for an answer among the {} of the "
        "cache; /reset begins anew, a larger --kv-tokens makes room up to the model's {}",
        next.ids.size(), num_tokens_max(), session_.engine->model_config().max_position_embeddings);
  }
  Answer answer = TRY(generate(std::move(next)));
  if (std::ferror(stdout) != 0) {
    return base::error("cannot write to standard output: it is closed or full");
  }
  report(answer);
  return answer;
}

base::Result<Conversation::Answer> Conversation::generate(Prompt prompt) {
  Answer answer;
  text::AnswerReader reader(text_.tokenizer, {.starts_in_reasoning = prompt.ends_in_reasoning,
                                              .tool_calls = !prompt.tools.empty(),
                                              .tools = std::move(prompt.tools)});
  AnswerPrinter printer(options_.hide_thinking ? AnswerPrinter::Reasoning::kHidden
                                               : AnswerPrinter::Reasoning::kShown);
  const auto num_prompt_tokens = static_cast<int64_t>(prompt.ids.size());
  std::optional<base::Progress> progress;
  progress.emplace("prompt", static_cast<uint64_t>(num_prompt_tokens),
                   base::Progress::Unit::kTokens, session_.model->clock);
  const auto take = [&](const std::vector<OutputEvent>& events) {
    answer.add(events);
    if (!common_.json) printer.print(events);
  };
  const auto on_update = [&](const engine::EngineUpdate& update) -> base::Status {
    if (progress) progress->update(static_cast<uint64_t>(update.num_prompt_tokens_done));
    if (!update.tokens.empty()) progress.reset();
    for (const int32_t token : update.tokens) take(TRY(reader.push(token)));
    return {};
  };
  InterruptGuard::clear();
  const int64_t room = num_tokens_max() - num_prompt_tokens;
  answer.report = TRY(run_request(
      *session_.engine,
      {.prompt = std::move(prompt.ids),
       .max_tokens = static_cast<int32_t>(std::min<int64_t>(options_.max_tokens, room)),
       .sampling = options_.sampling},
      {.on_update = on_update,
       .wants_more = [] { return !InterruptGuard::pressed() && std::ferror(stdout) == 0; }}));
  progress.reset();
  take(reader.finish());
  printer.finish();
  return answer;
}

void Conversation::report(const Answer& answer) const {
  if (!common_.json) {
    const bool only_reasoning =
        answer.content.empty() && answer.tool_calls.empty() && !answer.reasoning.empty();
    base::log_info(generation_summary(answer.report) +
                   (only_reasoning ? "; only reasoning, no answer" : ""));
    return;
  }
  const ModelSession& model = *session_.model;
  json::object line =
      base::result_document("chat", provenance_of(model, options_.engine, options_.sampling.seed));
  line["content"] = answer.content;
  line["reasoning_content"] = answer.reasoning;
  json::array tool_calls;
  for (const Answer::ToolCall& call : answer.tool_calls) {
    if (!call.whole) continue;
    tool_calls.push_back(json::object{
        {"type", "function"},
        {"function", json::object{{"name", call.name}, {"arguments", call.arguments}}}});
  }
  if (!tool_calls.empty()) line["tool_calls"] = std::move(tool_calls);
  line["finish_reason"] = name(answer.report.reason);
  line["usage"] = usage_json(answer.report);
  line["timings"] = timings_json(answer.report);
  write_out(base::compact_json(line) + "\n");
}

}  // namespace ingot::cli
