#include "text/chat_template.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "base/mapped_file.h"
#include "text/jinja_parser.h"
#include "text/jinja_renderer.h"

namespace ingot::text {
namespace {

using base::error;
using base::Result;
namespace json = base::json;

// Published templates have some 10 KB. Parsing takes time in proportion.
constexpr size_t kTemplateBytesMax = 256 << 10;
constexpr uint64_t kConfigBytesMax = 16 << 20;

constexpr std::string_view kSpecialTokenNames[] = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};
constexpr std::string_view kReasoningNames[] = {"reasoning_content", "thinking", "reasoning"};

std::string_view kind_name(TemplateError::Kind kind) {
  switch (kind) {
    case TemplateError::Kind::kUndefined:
      return "UndefinedError";
    case TemplateError::Kind::kSecurity:
      return "SecurityError";
    case TemplateError::Kind::kType:
      return "TypeError";
    case TemplateError::Kind::kValue:
      return "ValueError";
    case TemplateError::Kind::kRaised:
      return "the template refuses this conversation";
    case TemplateError::Kind::kLimit:
      return "limit reached";
    case TemplateError::Kind::kUnsupported:
      return "not supported";
    default:
      return "syntax error";
  }
}

// The error with the whole line that people read as its message.
TemplateError with_message(TemplateError failure, std::string_view name) {
  std::string reason = failure.reason;
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  if (failure.line == 0) {
    failure.message = reason;  // about what was given to the template
  } else if (failure.kind == TemplateError::Kind::kSyntax) {
    failure.message = fmt::format("{}: line {}, {}", name, failure.line, reason);
  } else {
    failure.message =
        fmt::format("{}: line {}: {}: {}", name, failure.line, kind_name(failure.kind), reason);
  }
  return failure;
}

Result<JinjaTemplate> parse_source(std::string_view source, std::string_view name) {
  if (source.size() > kTemplateBytesMax) {
    return error("{}: a template of {} bytes; the limit is {}", name, source.size(),
                 kTemplateBytesMax);
  }
  auto parsed = parse_jinja(source);
  if (!parsed) return std::unexpected(with_message(std::move(parsed.error()), name));
  return *std::move(parsed);
}

// Roles that every API has. Templates put them into markers, "<|" ~ role ~ "|>", and a word from
// this list is the same whoever wrote it.
constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};

TemplateValue with_known_role(const TemplateValue& role) {
  const PromptText* name = role.as_text();
  const bool is_known =
      name != nullptr && std::ranges::find(kRoles, name->text) != std::end(kRoles);
  return is_known ? TemplateValue::trusted(name->text) : role;
}

// A message as templates see it.
TemplateValue prepared(const TemplateDict& message) {
  const TemplateValue* reasoning = nullptr;
  for (const std::string_view name : kReasoningNames) {
    const TemplateValue* value = message.find(name);
    if (reasoning == nullptr && value != nullptr && !value->is_none()) reasoning = value;
  }
  TemplateDict dict;
  // The place that a new key gets shows in |tojson and |items.
  if (reasoning != nullptr) dict.set("thinking", *reasoning);
  for (const auto& [key, value] : message.entries()) {
    if (value.is_none()) continue;
    const PromptText* name = key.as_text();
    const bool is_role = name != nullptr && name->text == "role";
    dict.set(key, is_role ? with_known_role(value) : value);
  }
  if (reasoning != nullptr) dict.set("reasoning_content", *reasoning);
  return TemplateValue::dict(std::move(dict));
}

TemplateResult<TemplateValue> prepared_messages(const TemplateValue& messages) {
  const TemplateList* list = messages.as_sequence();
  if (list == nullptr) {
    return fail(TemplateError::Kind::kType, "messages: expected an array of objects");
  }
  TemplateList prepared_list;
  for (const TemplateValue& message : *list) {
    const TemplateDict* dict = message.as_dict();
    if (dict == nullptr) {
      return fail(TemplateError::Kind::kType, "messages[{}]: expected an object",
                  prepared_list.size());
    }
    prepared_list.push_back(prepared(*dict));
  }
  return TemplateValue::list(std::move(prepared_list));
}

Result<json::object> read_object(const std::filesystem::path& path) {
  const std::string text = TRY(base::read_text_file(path, kConfigBytesMax));
  json::value value = TRY(base::parse_json(text, path.string()));
  if (!value.is_object()) return error("{}: the file must be a JSON object", path.string());
  return std::move(value.get_object());
}

// A token is a string, or an object that has it as "content".
std::optional<std::string> token_text(const json::value& token) {
  if (token.is_string()) return std::string(token.get_string());
  const json::object* object = token.if_object();
  const json::value* content = object != nullptr ? object->if_contains("content") : nullptr;
  if (content == nullptr || !content->is_string()) return std::nullopt;
  return std::string(content->get_string());
}

void add_tokens(const json::object& config, SpecialTokensMap& tokens) {
  for (const std::string_view name : kSpecialTokenNames) {
    const json::value* token = config.if_contains(name);
    const auto text = token != nullptr ? token_text(*token) : std::nullopt;
    const bool is_known = std::any_of(tokens.begin(), tokens.end(),
                                      [&](const auto& known) { return known.first == name; });
    if (text && !is_known) tokens.emplace_back(name, *text);
  }
  const json::value* extra = config.if_contains("extra_special_tokens");
  if (extra == nullptr || !extra->is_object()) return;
  for (const auto& [name, token] : extra->get_object()) {
    if (const auto text = token_text(token)) tokens.emplace_back(name, *text);
  }
}

}  // namespace

struct ChatTemplate::Shared {
  std::string name;
  JinjaTemplate main;
  std::optional<JinjaTemplate> with_tools;
  std::string name_with_tools;
  SpecialTokensMap tokens;
  std::vector<std::string> variables;
  std::vector<std::string> literals;
};

std::span<const std::string> ChatTemplate::variables() const { return shared_->variables; }

const SpecialTokensMap& ChatTemplate::special_tokens() const { return shared_->tokens; }

std::vector<std::string> ChatTemplate::missing_special_tokens() const {
  std::vector<std::string> missing;
  for (const std::string_view name : kSpecialTokenNames) {
    const auto& names = shared_->variables;
    const bool is_read = std::ranges::find(names, name) != names.end();
    const bool is_given = std::ranges::find(shared_->tokens, name, [](const auto& token) {
                            return token.first;
                          }) != shared_->tokens.end();
    if (is_read && !is_given) missing.emplace_back(name);
  }
  return missing;
}

std::span<const std::string> ChatTemplate::literals() const { return shared_->literals; }

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string_view name,
                                         SpecialTokensMap tokens) {
  return parse_all({std::string(name), std::string(source)}, nullptr, std::move(tokens));
}

Result<ChatTemplate> ChatTemplate::parse_all(const Source& source, const Source* with_tools,
                                             SpecialTokensMap tokens) {
  auto shared = std::make_shared<Shared>();
  shared->name = source.name;
  shared->main = TRY(parse_source(source.text, source.name));
  shared->variables = shared->main.variables;
  shared->literals = shared->main.literals;
  if (with_tools != nullptr) {
    shared->name_with_tools = with_tools->name;
    shared->with_tools = TRY(parse_source(with_tools->text, with_tools->name));
    const std::vector<std::string> main = std::move(shared->variables);
    shared->variables.clear();
    const std::vector<std::string>& other = shared->with_tools->variables;
    std::set_union(main.begin(), main.end(), other.begin(), other.end(),
                   std::back_inserter(shared->variables));
    std::ranges::copy(shared->with_tools->literals, std::back_inserter(shared->literals));
  }
  shared->tokens = std::move(tokens);
  return ChatTemplate(std::move(shared));
}

Result<std::optional<ChatTemplate>> ChatTemplate::load(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "chat_template.jinja";
  const std::filesystem::path config_file = directory / "tokenizer_config.json";
  const std::filesystem::path tokens_file = directory / "special_tokens_map.json";
  json::object config;
  SpecialTokensMap tokens;
  if (std::filesystem::exists(config_file)) config = TRY(read_object(config_file));
  // Older models have their tokens in a file of their own, which then goes first.
  if (!config.contains("added_tokens_decoder") && std::filesystem::exists(tokens_file)) {
    add_tokens(TRY(read_object(tokens_file)), tokens);
  }
  add_tokens(config, tokens);
  if (std::filesystem::exists(file)) {
    const std::string text = TRY(base::read_text_file(file, kTemplateBytesMax));
    return TRY(parse(text, file.string(), std::move(tokens)));
  }
  const json::value* entry = config.if_contains("chat_template");
  if (entry == nullptr || entry->is_null()) return std::nullopt;
  const std::string name = config_file.string() + ": \"chat_template\"";
  if (entry->is_string()) {
    return TRY(parse(std::string(entry->get_string()), name, std::move(tokens)));
  }
  if (!entry->is_array()) return error("{} must be a string or a list of templates", name);
  std::optional<Source> main;
  std::optional<Source> with_tools;
  for (const json::value& element : entry->get_array()) {
    const json::object* object = element.if_object();
    const json::value* title = object != nullptr ? object->if_contains("name") : nullptr;
    const json::value* text = object != nullptr ? object->if_contains("template") : nullptr;
    if (title == nullptr || text == nullptr || !title->is_string() || !text->is_string()) {
      return error("{}: each template needs \"name\" and \"template\", both strings", name);
    }
    const std::string title_text(title->get_string());
    const Source source{fmt::format("{} \"{}\"", name, title_text),
                        std::string(text->get_string())};
    if (title_text == "default") main = source;
    if (title_text == "tool_use") with_tools = source;
  }
  if (!main) return error("{} has no template named \"default\"; add one", name);
  return TRY(parse_all(*main, with_tools ? &*with_tools : nullptr, std::move(tokens)));
}

TemplateResult<PromptText> ChatTemplate::render(const ChatInputs& inputs,
                                                const std::tm& now) const {
  const bool uses_tools = shared_->with_tools && !inputs.tools.is_none();
  const std::string& name = uses_tools ? shared_->name_with_tools : shared_->name;
  auto messages = prepared_messages(inputs.messages);
  if (!messages) return std::unexpected(with_message(std::move(messages.error()), name));
  TemplateVariables variables;
  for (const auto& [token, text] : shared_->tokens) {
    variables.emplace_back(token, TemplateValue::trusted(text));
  }
  variables.insert(variables.end(), inputs.extra.begin(), inputs.extra.end());
  variables.emplace_back("messages", *std::move(messages));
  variables.emplace_back("tools", inputs.tools);
  variables.emplace_back("documents", inputs.documents);
  variables.emplace_back("add_generation_prompt",
                         TemplateValue::boolean(inputs.add_generation_prompt));
  auto rendered = render_jinja(uses_tools ? *shared_->with_tools : shared_->main, variables, now);
  if (!rendered) return std::unexpected(with_message(std::move(rendered.error()), name));
  return rendered;
}

}  // namespace ingot::text
