#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "cli/chat_request.h"
#include "cli/conversation.h"
#include "cli/engine_session.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "server/chat_prompt.h"
#include "text/utf8.h"

namespace ingot::cli {
namespace {

// A cache of this size is made when nobody says how large: it costs memory whether used or not.
constexpr int64_t kKvTokensDefault = 32768;
constexpr int32_t kStepTokens = 256;

constexpr std::string_view kHelp =
    "/system TEXT   how the model is to behave; without TEXT nothing is said of it\n"
    "/reset         forget what was said, but for /system\n"
    "/tokens        how many tokens the conversation has\n"
    "/help          this\n"
    "/exit, /quit   end, as Ctrl-D does\n"
    "A message of several lines: end each with \\, or put \"\"\" before and after.\n"
    "A message that begins with / is sent with a space before it.\n"
    "Ctrl-C stops an answer, or gives up what is being typed.\n";

constexpr std::string_view kQuotes = "\"\"\"";

// A line, several that end with a backslash, or all between two """. An interrupt gives it up.
base::Result<LineReader::Line> read_message(LineReader& input) {
  std::string message;
  bool in_quotes = false;
  while (true) {
    LineReader::Line line = TRY(input.read(message.empty() && !in_quotes ? "> " : "  "));
    if (line.outcome != LineReader::Outcome::kLine) return line;
    std::string_view text = line.text;
    if (message.empty() && !in_quotes && text.starts_with(kQuotes)) {
      in_quotes = true;
      text.remove_prefix(kQuotes.size());
    }
    const bool ends = in_quotes ? text.ends_with(kQuotes) : !text.ends_with('\\');
    if (ends) {
      if (in_quotes) text.remove_suffix(kQuotes.size());
      line.text = message.append(text);
      return line;
    }
    if (!in_quotes) text.remove_suffix(1);
    message.append(text).append("\n");
  }
}

enum class Next { kGoOn, kEnd };

Next obey(std::string_view line, const CommonOptions& common, Conversation& conversation) {
  // Among lines of JSON there is nothing but answers.
  const auto say = [&](std::string_view text) {
    if (common.json) return base::log_info(text);
    write_out(fmt::format("{}\n", text));
  };
  const size_t space = line.find(' ');
  const std::string_view command = line.substr(0, space);
  const std::string_view rest = space == std::string_view::npos ? "" : line.substr(space + 1);
  if (command == "/exit" || command == "/quit") return Next::kEnd;
  if (command == "/system") {
    conversation.set_system(rest);
    say(rest.empty() ? "the model is told nothing" : "the model is told this from now on");
  } else if (command == "/reset") {
    conversation.reset();
    say("the conversation is forgotten");
  } else if (command == "/tokens") {
    const auto count = conversation.num_tokens();
    say(count ? fmt::format("{} tokens of {}", *count, conversation.num_tokens_max())
              : count.error().message);
  } else if (command == "/help") {
    say(kHelp.substr(0, kHelp.size() - 1));
  } else {
    base::log_warning(fmt::format("no command {}; /help lists them", terminal_safe(command)));
  }
  return Next::kGoOn;
}

// Until the input ends or /exit.
base::Status converse(LineReader& input, const CommonOptions& common, Conversation& conversation) {
  while (true) {
    const LineReader::Line line = TRY(read_message(input));
    if (line.outcome == LineReader::Outcome::kEnd) {
      if (input.is_terminal()) write_out("\n");
      return {};
    }
    if (line.outcome == LineReader::Outcome::kInterrupted) continue;
    if (line.text.find_first_not_of(" \t\n") == std::string::npos) continue;
    if (line.text.starts_with('/')) {
      if (obey(line.text, common, conversation) == Next::kEnd) return {};
      continue;
    }
    const base::Status status = conversation.reply(line.text);
    if (status) continue;
    // One message's failure does not end the conversation that a person is having.
    if (!input.is_terminal()) return status;
    base::log_warning(status.error().message);
  }
}

// The switches that the options ask for have to be ones that the template reads.
base::Status check_options(const engine::ModelText& model_text, const ChatOptions& options) {
  if (!model_text.chat_template) {
    return base::error(
        "{}: no chat template, so it is not known how to talk to this model; get "
        "chat_template.jinja from where the weights are from, or use ingot generate --prompt",
        options.model.model.string());
  }
  if (text::find_invalid_utf8(options.system)) return base::error("--system: not UTF-8");
  const auto reads = [&](std::string_view name) {
    return server::reads(*model_text.chat_template, name);
  };
  if (options.thinking != "auto" && !reads("enable_thinking") && !reads("thinking")) {
    return base::error("--thinking {}: this model's chat template has no switch for it",
                       options.thinking);
  }
  if (!options.reasoning_effort.empty() && !reads("reasoning_effort")) {
    return base::error("--reasoning-effort: this model's chat template does not read it");
  }
  return {};
}

}  // namespace

base::Result<int> chat(const CommonOptions& common, const ChatOptions& options) {
  const model::ModelConfig config = TRY(model::load_model_config(options.model.model));
  const engine::ModelText model_text = TRY(open_model_text(options.model.model, config));
  TRY(check_options(model_text, options));
  std::optional<ChatRequest> request;
  if (!options.messages.empty()) {
    request = TRY(read_chat_request(options.messages));
  }
  LineReader input = TRY(LineReader::open());
  EngineChoices choices = options.engine;
  if (choices.kv_tokens > config.max_position_embeddings) {
    base::log_info(fmt::format("--kv-tokens {}: the model has {} positions, and so has the cache",
                               choices.kv_tokens, config.max_position_embeddings));
  }
  const int64_t context = choices.kv_tokens > 0 ? choices.kv_tokens : kKvTokensDefault;
  choices.kv_tokens = std::min(context, config.max_position_embeddings);
  const auto session =
      TRY(open_engine(common, options.model, choices, {.max_step_tokens = kStepTokens},
                      &model_text.tokenizer, {.memory_remedy = "ask for less with --kv-tokens"}));
  Conversation conversation(common, options, *session, model_text);
  if (options.message) {
    TRY(conversation.reply(*options.message));
    return 0;
  }
  if (request) {
    TRY(conversation.answer(*request));
    return 0;
  }
  std::optional<InterruptGuard> guard;
  if (input.is_terminal()) {
    guard.emplace();
    write_out(fmt::format("Talk to {}; room for {} tokens. /help lists commands, Ctrl-D ends.\n",
                          options.model.model.string(), conversation.num_tokens_max()));
  }
  TRY(converse(input, common, conversation));
  return 0;
}

}  // namespace ingot::cli
