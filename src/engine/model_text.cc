#include "engine/model_text.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/json.h"
#include "base/mapped_file.h"

namespace ingot::engine {
namespace {

using model::Finding;
using model::Severity;

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kTemplateFile = "chat_template";
constexpr uint64_t kConfigBytesMax = 16 << 20;

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
  }
  int64_t missing = config.vocab_size - ids;
  for (int64_t id = 0; id < ids; ++id) {
    if (!tokenizer.has_token(static_cast<int32_t>(id))) ++missing;
  }
  if (missing > 0 && ids <= config.vocab_size) {
    findings.push_back({.severity = Severity::kNote,
                        .code = "ids_without_token",
                        .subject = kTokenizerFile,
                        .message = fmt::format("{} of the model's {} ids stand for no token",
                                               missing, config.vocab_size),
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
      if (tokenizer.added_token(marker) == nullptr) unknown.insert(marker);
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

// Hugging Face's library adds what "added_tokens_decoder" has beyond tokenizer.json. Ingot does
// not, and says so instead of reading such a token as letters.
base::Status check_added_tokens(const std::filesystem::path& directory,
                                const text::Tokenizer& tokenizer) {
  const std::filesystem::path path = directory / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) return {};
  const base::json::value config =
      TRY(base::parse_json(TRY(base::read_text_file(path, kConfigBytesMax)), path.string()));
  const base::json::object* object = config.if_object();
  const base::json::value* decoder =
      object == nullptr ? nullptr : object->if_contains("added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return {};
  for (const auto& [id, token] : decoder->get_object()) {
    const base::json::object* entry = token.if_object();
    const base::json::value* content = entry == nullptr ? nullptr : entry->if_contains("content");
    if (content == nullptr || !content->is_string()) continue;
    const text::AddedToken* added = tokenizer.added_token(std::string_view(content->get_string()));
    if (added == nullptr || std::to_string(added->id) != std::string_view(id)) {
      return base::error(
          "{}: added_tokens_decoder gives {:?} the id {}, and {} does not; get both files of the "
          "same model",
          path.string(), std::string_view(content->get_string()), std::string_view(id),
          kTokenizerFile);
    }
  }
  return {};
}

void compare_special_tokens(const text::Tokenizer& tokenizer,
                            const text::ChatTemplate& chat_template,
                            const model::ModelConfig& config, std::vector<Finding>& findings) {
  for (const auto& [name, content] : chat_template.special_tokens()) {
    const text::AddedToken* token = tokenizer.added_token(content);
    if (token == nullptr) {
      findings.push_back({.severity = Severity::kWarning,
                          .code = "special_token_is_text",
                          .subject = "tokenizer_config.json",
                          .message = fmt::format("{} is {:?}, which is no control token of {}",
                                                 name, content, kTokenizerFile),
                          .remedy = "get both files of the same model"});
    } else if (name == "eos_token" && !config.eos_token_ids.empty() &&
               std::ranges::find(config.eos_token_ids, token->id) == config.eos_token_ids.end()) {
      findings.push_back(
          {.severity = Severity::kWarning,
           .code = "end_of_sequence_differs",
           .subject = "tokenizer_config.json",
           .message = fmt::format("eos_token {:?} is id {}, at which config.json ends no answer",
                                  content, token->id),
           .remedy = "compare config.json with the published one"});
    }
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
  text::Tokenizer tokenizer = TRY(text::Tokenizer::load(file));
  TRY(check_added_tokens(directory, tokenizer));
  return tokenizer;
}

base::Result<ModelText> ModelText::load(const std::filesystem::path& directory) {
  text::Tokenizer tokenizer = TRY(load_tokenizer(directory));
  auto chat_template = text::ChatTemplate::load(directory);
  if (!chat_template) return std::unexpected(std::move(chat_template).error());
  return ModelText{.tokenizer = std::move(tokenizer), .chat_template = std::move(*chat_template)};
}

std::vector<Finding> ModelText::compare_with(const model::ModelConfig& config) const {
  std::vector<Finding> findings = compare_tokenizer(tokenizer, config);
  if (!chat_template) return findings;
  compare_markers(tokenizer, *chat_template, findings);
  compare_special_tokens(tokenizer, *chat_template, config, findings);
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

TokenMask drawable_ids(const text::Tokenizer& tokenizer, int64_t vocab_size) {
  TokenMask mask(vocab_size);
  for (int64_t id = 0; id < vocab_size; ++id) {
    if (!tokenizer.has_token(static_cast<int32_t>(id))) mask.forbid(static_cast<int32_t>(id));
  }
  return mask;
}

std::vector<Finding> compare_tokenizer(const text::Tokenizer& tokenizer,
                                       const model::ModelConfig& config) {
  std::vector<Finding> findings;
  compare_sizes(tokenizer, config, findings);
  compare_end_of_sequence(tokenizer, config, findings);
  return findings;
}

}  // namespace ingot::engine
