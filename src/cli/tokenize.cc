#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/provenance.h"
#include "cli/chat_request.h"
#include "cli/model_session.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "engine/model_text.h"
#include "text/utf8.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

constexpr uint64_t kFileBytesMax = 1 << 30;

// What is to be tokenized, in the form in which the tokenizer takes it.
base::Result<text::PromptText> read_text(const TokenizeOptions& options) {
  if (!options.messages.empty()) {
    const auto chat_template = TRY(text::ChatTemplate::load(options.model));
    if (!chat_template) {
      return base::error("{}: no chat template; --messages needs one", options.model.string());
    }
    return chat_template->render(TRY(read_chat_inputs(options.messages)), base::local_calendar());
  }
  text::PromptText prompt {
    .text = options.text ? *options.text : TRY(base::read_text_file(options.file, kFileBytesMax))
  };
  if (!options.control_tokens && !prompt.text.empty()) {
    prompt.data = {{.begin = 0, .end = prompt.text.size()}};
  }
  return prompt;
}

// Names what was to be tokenized in an error about it.
std::string source_of(const TokenizeOptions& options) {
  if (options.text) return "--text";
  return (options.file.empty() ? options.messages : options.file).string();
}

// One JSON string a line in, one JSON array of ids a line out.
base::Status tokenize_lines(const TokenizeOptions& options, const text::Tokenizer& tokenizer) {
  const std::string content = TRY(base::read_text_file(options.lines, kFileBytesMax));
  const auto control =
      options.control_tokens ? text::ControlTokens::kRecognise : text::ControlTokens::kAsText;
  int64_t number = 0;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    const std::string source = fmt::format("{}: line {}", options.lines.string(), ++number);
    const auto line = base::parse_json(std::string_view(content).substr(at, end - at), source);
    if (!line || !line->is_string()) return base::error("{}: expected a JSON string", source);
    const auto ids = tokenizer.encode(line->get_string(), control);
    if (!ids) return base::error("{}: {}", source, ids.error().message);
    fmt::print("[{}]\n", fmt::join(*ids, ","));
    at = end + 1;
  }
  return {};
}

base::Status detokenize(const CommonOptions& common, const TokenizeOptions& options,
                        const text::Tokenizer& tokenizer) {
  const TokenIds ids = TRY(read_token_ids(options.token_ids));
  json::array texts;
  for (const std::vector<int32_t>& sequence : ids.sequences) {
    auto text = tokenizer.decode(sequence, text::SpecialTokens::kKeep);
    if (!text) return base::error("{}: {}", options.token_ids.string(), text.error().message);
    if (common.json) {
      texts.emplace_back(*text);
    } else {
      write_out((stdout_is_terminal() ? terminal_safe(*text) : *text) + "\n");
    }
  }
  if (!common.json) return {};
  json::object document = base::result_document("tokenize", {.threads = 1, .seed = {}});
  document["texts"] = std::move(texts);
  fmt::print("{}", base::pretty_json(document));
  return {};
}

// A token in quotes. One that is a part of a character shows its bytes: "\xC3".
std::string shown_token(const text::Tokenizer& tokenizer, int32_t id) {
  const std::string_view bytes = tokenizer.token_bytes(id);
  if (text::find_invalid_utf8(bytes)) {
    std::string shown = "\"";
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      shown += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02X}", byte);
    }
    return shown + "\"";
  }
  return base::compact_json(json::value(bytes));
}

struct Timings {
  base::Duration load{};    // of the tokenizer
  base::Duration encode{};  // from text to ids
};

void print_tokens(const CommonOptions& common, const text::Tokenizer& tokenizer,
                  const text::PromptText& prompt, const std::vector<int32_t>& ids,
                  const Timings& timings) {
  if (common.json) {
    json::object document = base::result_document("tokenize", {.threads = 1, .seed = {}});
    document["text"] = prompt.text;
    document["num_tokens"] = ids.size();
    document["token_ids"] = json::array(ids.begin(), ids.end());
    json::array control_tokens;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (tokenizer.added_token(ids[i]) != nullptr) control_tokens.emplace_back(i);
    }
    document["control_token_indices"] = std::move(control_tokens);
    document["timings"] = json::object{{"load_seconds", base::seconds(timings.load)},
                                       {"encode_seconds", base::seconds(timings.encode)}};
    fmt::print("{}", base::pretty_json(document));
    return;
  }
  for (const int32_t id : ids) {
    fmt::print("{:>8}  {}{}\n", id, shown_token(tokenizer, id),
               tokenizer.added_token(id) != nullptr ? "  control token" : "");
  }
  fmt::print("{} tokens, {} bytes\n", ids.size(), prompt.text.size());
}

}  // namespace

base::Result<int> tokenize(const CommonOptions& common, const TokenizeOptions& options) {
  const int given = options.text.has_value() + !options.file.empty() + !options.lines.empty() +
                    !options.messages.empty() + !options.token_ids.empty();
  if (given != 1) {
    return base::error(
        "give one of --text, --file, --messages, --jsonl and --token-ids; see ingot tokenize "
        "--help");
  }
  const base::SystemClock clock;
  Timings timings;
  base::Instant start = clock.now();
  const text::Tokenizer tokenizer = TRY(engine::load_tokenizer(options.model));
  timings.load = clock.now() - start;
  if (!options.lines.empty()) {
    TRY(tokenize_lines(options, tokenizer));
    return 0;
  }
  if (!options.token_ids.empty()) {
    TRY(detokenize(common, options, tokenizer));
    return 0;
  }
  const text::PromptText prompt = TRY(read_text(options));
  start = clock.now();
  const auto ids = tokenizer.encode(prompt);
  timings.encode = clock.now() - start;
  if (!ids) return base::error("{}: {}", source_of(options), ids.error().message);
  print_tokens(common, tokenizer, prompt, *ids, timings);
  return 0;
}

}  // namespace ingot::cli
