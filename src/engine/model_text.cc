#include "engine/model_text.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace ingot::engine {
namespace {

using model::Finding;
using model::Severity;

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kTemplateFile = "chat_template";

void compare_sizes(const text::Tokenizer& tokenizer, const model::ModelConfig& config,
                   std::vector<Finding>& findings) {
  const int64_t ids = tokenizer.vocabulary_size();
  if (ids > config.vocab_size) {
    findings.push_back(
        {.severity = Severity::kError,
         .code = "tokenizer_too_large",
         .subject = kTokenizerFile,
         .message = fmt::format("has ids up to {}, and the model only {} embedding rows", ids - 1,
                                config.vocab_size),
         .remedy = "get the tokenizer that belongs to this model"});
  } else if (ids < config.vocab_size) {
    findings.push_back({.severity = Severity::kNote,
                        .code = "padding_ids",
                        .subject = kTokenizerFile,
                        .message = fmt::format("ids {} to {} of the model stand for no token", ids,
                                               config.vocab_size - 1),
                        .remedy = "nothing to do; they are never drawn"});
  }
}

void compare_end_of_sequence(const text::Tokenizer& tokenizer, const model::ModelConfig& config,
                             std::vector<Finding>& findings) {
  for (const int64_t id : config.eos_token_ids) {
    if (tokenizer.added_token(static_cast<int32_t>(id)) != nullptr) continue;
    findings.push_back({.severity = Severity::kWarning,
                        .code = "end_of_sequence_is_text",
                        .subject = "eos_token_id",
                        .message = fmt::format(
                            "{} is no control token of {}, so ordinary text could end an answer",
                            id, kTokenizerFile),
                        .remedy = "compare config.json with the published one"});
  }
  if (config.eos_token_ids.empty()) {
    findings.push_back({.severity = Severity::kWarning,
                        .code = "no_end_of_sequence",
                        .subject = "eos_token_id",
                        .message = "neither config.json nor generation_config.json has one, so "
                                   "every answer runs to its largest length",
                        .remedy = "compare them with the published ones"});
  }
}

using Markers = std::set<std::string, std::less<>>;

// Words like <|user|>, whose bars DeepSeek writes wide.
void add_markers_with_bars(std::string_view literal, std::string_view bar, Markers& markers) {
  const std::string begin = fmt::format("<{}", bar);
  const std::string end = fmt::format("{}>", bar);
  for (size_t at = literal.find(begin); at != std::string_view::npos;
       at = literal.find(begin, at + 1)) {
    const size_t name_at = at + begin.size();
    const size_t name_end = literal.find(end, name_at);
    if (name_end == std::string_view::npos) return;
    const std::string_view name = literal.substr(name_at, name_end - name_at);
    const bool is_word = !name.empty() && name.find_first_of(" <>\n") == std::string_view::npos;
    if (is_word) markers.emplace(literal.substr(at, name_end + end.size() - at));
  }
}

Markers markers_in(std::string_view literal) {
  Markers markers;
  add_markers_with_bars(literal, "|", markers);
  add_markers_with_bars(literal, "\uFF5C", markers);
  for (const std::string_view marker :
       {"[gMASK]", "<sop>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>",
        "</arg_key>", "<arg_value>", "</arg_value>", "<tool_response>", "</tool_response>"}) {
    if (literal.contains(marker)) markers.emplace(marker);
  }
  return markers;
}

// A marker that the tokenizer does not know would reach the model as a handful of letters.
void compare_markers(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
                     std::vector<Finding>& findings) {
  Markers unknown;
  for (const std::string& literal : chat_template.literals()) {
    for (const std::string& marker : markers_in(literal)) {
      const auto id = tokenizer.token_id(marker);
      if (!id || tokenizer.added_token(*id) == nullptr) unknown.insert(marker);
    }
  }
  for (const std::string& marker : unknown) {
    findings.push_back({.severity = Severity::kWarning,
                        .code = "marker_is_text",
                        .subject = kTemplateFile,
                        .message = fmt::format("writes {}, which is no control token of {}", marker,
                                               kTokenizerFile),
                        .remedy = "get template and tokenizer of the same model"});
  }
}

}  // namespace

base::Result<text::Tokenizer> load_tokenizer(const std::filesystem::path& directory) {
  if (!std::filesystem::is_directory(directory)) {
    return base::error("{}: no such model directory", directory.string());
  }
  const std::filesystem::path file = directory / kTokenizerFile;
  if (!std::filesystem::exists(file)) {
    return base::error(
        "{}: missing; text needs the model's tokenizer, get it from where the weights are from "
        "(commands that take token ids run without)",
        file.string());
  }
  return text::Tokenizer::load(file);
}

base::Result<ModelText> ModelText::load(const std::filesystem::path& directory) {
  text::Tokenizer tokenizer = TRY(load_tokenizer(directory));
  return ModelText {
    .tokenizer = std::move(tokenizer), .chat_template = TRY(text::ChatTemplate::load(directory))
  };
}

std::vector<Finding> ModelText::compare_with(const model::ModelConfig& config) const {
  std::vector<Finding> findings = compare_tokenizer(tokenizer, config);
  if (!chat_template) return findings;
  compare_markers(tokenizer, *chat_template, findings);
  for (const std::string& name : chat_template->missing_special_tokens()) {
    findings.push_back(
        {.severity = Severity::kWarning,
         .code = "special_token_undefined",
         .subject = kTemplateFile,
         .message = fmt::format("reads {}, which tokenizer_config.json does not give", name),
         .remedy = "get tokenizer_config.json from where the weights are from"});
  }
  return findings;
}

std::vector<Finding> compare_tokenizer(const text::Tokenizer& tokenizer,
                                       const model::ModelConfig& config) {
  std::vector<Finding> findings;
  compare_sizes(tokenizer, config, findings);
  compare_end_of_sequence(tokenizer, config, findings);
  return findings;
}

}  // namespace ingot::engine
