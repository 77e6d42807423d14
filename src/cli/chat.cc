#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "base/provenance.h"
#include "cli/answer_printer.h"
#include "cli/generation_report.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/model_session.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "engine/generation.h"
#include "engine/model_text.h"
#include "text/answer_reader.h"

namespace ingot::cli {
namespace {

namespace json = base::json;
using text::OutputEvent;

// A cache of this size is made when nobody says how large: it costs memory whether used or not.
constexpr int64_t kKvTokensDefault = 32768;

constexpr std::string_view kHelp =
    "/system TEXT   say how the model is to behave; without TEXT, say nothing\n"
    "/reset         forget the conversation\n"
    "/tokens        how many tokens the conversation has\n"
    "/help          this\n"
    "/exit          end, as Ctrl-D does\n"
    "A \\ at the end of a line continues it on the next. Ctrl-C stops an answer.\n";

// What one answer was.
struct Answer {
  std::string reasoning;
  std::string content;
  engine::Generation generation;
  size_t prompt_tokens = 0;
};

void collect(Answer& answer, const std::vector<OutputEvent>& events) {
  for (const OutputEvent& event : events) {
    (event.kind == OutputEvent::Kind::kReasoning ? answer.reasoning : answer.content) += event.text;
  }
}

class Chat {
 public:
  Chat(const CommonOptions& common, const ChatOptions& options, const ModelSession& session,
       const engine::ModelText& model_text, engine::ModelExecutor& executor)
      : common_(common),
        options_(options),
        session_(session),
        text_(model_text),
        executor_(executor),
        generator_(executor, session.clock),
        system_(options.system) {}

  // Until the input ends or /exit.
  base::Status run(LineReader& input);

 private:
  enum class Next { kGoOn, kEnd };

  base::Result<std::optional<std::string>> read_message(LineReader& input);
  base::Result<Next> obey(std::string_view line);
  base::Status reply(std::string message);
  base::Result<std::vector<int32_t>> prompt_ids(bool* in_reasoning) const;
  base::Result<Answer> generate(std::vector<int32_t> prompt, bool in_reasoning);
  void report(const Answer& answer) const;

  const CommonOptions& common_;
  const ChatOptions& options_;
  const ModelSession& session_;
  const engine::ModelText& text_;
  engine::ModelExecutor& executor_;
  engine::Generator generator_;
  std::string system_;
  json::array messages_;  // without the system's
};

base::Status Chat::run(LineReader& input) {
  while (true) {
    const auto line = TRY(read_message(input));
    if (!line) {
      if (input.is_terminal()) write_out("\n");
      return {};
    }
    if (line->empty()) continue;
    if (line->starts_with('/')) {
      if (TRY(obey(*line)) == Next::kEnd) return {};
    } else if (const base::Status status = reply(*line); !status) {
      // One message's failure does not end the conversation that a person is having.
      if (!input.is_terminal()) return status;
      base::log_warning(status.error().message);
    }
  }
}

// A line, or several that end with a backslash.
base::Result<std::optional<std::string>> Chat::read_message(LineReader& input) {
  std::string message;
  while (true) {
    auto line = TRY(input.read(message.empty() ? "> " : "  "));
    if (!line) return message.empty() ? std::nullopt : std::optional(message);
    if (!line->ends_with('\\')) return message + *line;
    line->back() = '\n';
    message += *line;
  }
}

base::Result<Chat::Next> Chat::obey(std::string_view line) {
  const size_t space = line.find(' ');
  const std::string_view command = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? "" : line.substr(space + 1);
  if (command == "/exit" || command == "/quit") return Next::kEnd;
  if (command == "/system") {
    system_ = rest;
  } else if (command == "/reset") {
    messages_.clear();
  } else if (command == "/tokens") {
    bool in_reasoning = false;
    const auto ids = prompt_ids(&in_reasoning);
    if (ids) {
      write_out(fmt::format("{} tokens of {}\n", ids->size(), executor_.capacity().context));
    } else {
      base::log_warning(ids.error().message);
    }
  } else if (command == "/help") {
    write_out(kHelp);
  } else {
    base::log_warning(fmt::format("no command {}; /help lists them", command));
  }
  return Next::kGoOn;
}

base::Status Chat::reply(std::string message) {
  messages_.push_back(json::object{{"role", "user"}, {"content", std::move(message)}});
  bool in_reasoning = false;
  auto prompt = prompt_ids(&in_reasoning);
  if (prompt && static_cast<int64_t>(prompt->size()) >= executor_.capacity().context) {
    prompt = base::error(
        "the conversation has {} tokens and the cache {}; begin anew with /reset, or start with a "
        "larger --kv-tokens",
        prompt->size(), executor_.capacity().context);
  }
  if (!prompt) {
    messages_.pop_back();
    return std::unexpected(prompt.error());
  }
  const auto answer = generate(std::move(*prompt), in_reasoning);
  if (!answer) {
    messages_.pop_back();
    return std::unexpected(answer.error());
  }
  messages_.push_back(json::object{{"role", "assistant"},
                                   {"content", answer->content},
                                   {"reasoning_content", answer->reasoning}});
  report(*answer);
  return {};
}

// The conversation as the model will see it.
base::Result<std::vector<int32_t>> Chat::prompt_ids(bool* in_reasoning) const {
  json::array messages;
  if (!system_.empty()) {
    messages.push_back(json::object{{"role", "system"}, {"content", system_}});
  }
  messages.insert(messages.end(), messages_.begin(), messages_.end());
  text::ChatInputs inputs;
  inputs.messages = text::TemplateValue::from_json(messages);
  if (options_.thinking == "off") {
    for (const char* name : {"enable_thinking", "thinking"}) {
      inputs.extra.emplace_back(name, text::TemplateValue::boolean(false));
    }
  }
  if (!options_.reasoning_effort.empty()) {
    inputs.extra.emplace_back("reasoning_effort",
                              text::TemplateValue::trusted(options_.reasoning_effort));
  }
  const text::PromptText prompt = TRY(text_.chat_template->render(inputs, base::local_calendar()));
  *in_reasoning = text::ends_in_reasoning(prompt.text);
  return text_.tokenizer.encode(prompt);
}

base::Result<Answer> Chat::generate(std::vector<int32_t> prompt, bool in_reasoning) {
  Answer answer;
  answer.prompt_tokens = prompt.size();
  text::AnswerReader reader(text_.tokenizer, {.starts_in_reasoning = in_reasoning});
  AnswerPrinter printer(options_.thinking == "hide" ? AnswerPrinter::Reasoning::kHidden
                                                    : AnswerPrinter::Reasoning::kShown);
  const auto take = [&](const std::vector<OutputEvent>& events) {
    collect(answer, events);
    if (!common_.json) printer.print(events);
  };
  InterruptGuard::clear();
  answer.generation =
      TRY(generator_.generate({.prompt = std::move(prompt),
                               .max_tokens = options_.max_tokens,
                               .sampling = options_.sampling,
                               .num_token_ids = text_.tokenizer.vocabulary_size()},
                              {.on_token = [&](int32_t token) -> base::Status {
                                 take(TRY(reader.push(token)));
                                 return {};
                               },
                               .wants_more = [] { return !InterruptGuard::pressed(); }}));
  take(reader.finish());
  printer.finish();
  return answer;
}

void Chat::report(const Answer& answer) const {
  const engine::Generation& generation = answer.generation;
  if (!common_.json) {
    base::log_info(generation_summary(generation, answer.prompt_tokens));
    return;
  }
  json::object line = base::result_document("chat", {.model_hash = session_.model->hash(),
                                                     .threads = session_.team->size(),
                                                     .arithmetic = session_.model->arithmetic(),
                                                     .seed = options_.sampling.seed});
  line["content"] = answer.content;
  line["reasoning_content"] = answer.reasoning;
  line["finish_reason"] = name(generation.finish_reason);
  line["usage"] = usage_json(generation, answer.prompt_tokens);
  line["timings"] = timings_json(generation, answer.prompt_tokens);
  write_out(base::compact_json(line) + "\n");
}

// The switches that the options ask for have to be ones that the template reads.
base::Status check_template(const engine::ModelText& model_text, const ChatOptions& options) {
  if (!model_text.chat_template) {
    return base::error(
        "{}: no chat template, so it is not known how to talk to this model; get "
        "chat_template.jinja from where the weights are from, or use ingot generate --prompt",
        options.model.model.string());
  }
  const auto& variables = model_text.chat_template->variables();
  const auto reads = [&](std::string_view name) {
    return std::ranges::find(variables, name) != variables.end();
  };
  if (options.thinking == "off" && !reads("enable_thinking") && !reads("thinking")) {
    return base::error("--thinking off: this model's chat template has no switch for it");
  }
  if (!options.reasoning_effort.empty() && !reads("reasoning_effort")) {
    return base::error("--reasoning-effort: this model's chat template does not read it");
  }
  return {};
}

}  // namespace

base::Result<int> chat(const CommonOptions& common, const ChatOptions& options) {
  const model::ModelConfig config = TRY(model::load_model_config(options.model.model));
  const engine::ModelText model_text = TRY(engine::load_model_text(options.model.model, config));
  TRY(check_template(model_text, options));
  LineReader input = TRY(LineReader::open());
  const auto session = TRY(open_session(common, options.model));
  const int64_t context = options.kv_tokens > 0 ? options.kv_tokens : kKvTokensDefault;
  const auto executor = TRY(engine::ModelExecutor::create(
      *session->model, *session->team, engine::generation_capacity(context, config)));
  std::optional<InterruptGuard> guard;
  if (input.is_terminal()) {
    guard.emplace();
    write_out(fmt::format("{}. /help lists commands, Ctrl-D ends.\n",
                          options.model.model.filename().string()));
  }
  TRY(Chat(common, options, *session, model_text, *executor).run(input));
  return 0;
}

}  // namespace ingot::cli
