#include "server/chat_schema.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/ranges.h>

#include "base/check.h"
#include "text/tool_call_arguments.h"

namespace ingot::server {
namespace {

namespace json = base::json;
using text::TemplateValue;

// What a template is given anyway.
constexpr std::array<std::string_view, 4> kTemplateFields = {"messages", "tools", "documents",
                                                             "add_generation_prompt"};

void check_part(FieldReader& reader, const std::string& place, const json::value& part) {
  if (part.is_string()) return;
  const json::object* object = part.if_object();
  const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
  const json::value* text = object == nullptr ? nullptr : object->if_contains("text");
  if (type == nullptr || !type->is_string()) {
    return reader.fail(place, fmt::format("{} has no type; expected {}", place,
                                          R"({"type": "text", "text": "..."})"));
  }
  if (type->get_string() != "text") {
    return reader.fail({.message = fmt::format("{} is of type {}; this model reads text alone",
                                               place, shown(*type)),
                        .param = place,
                        .code = "unsupported_parameter"});
  }
  if (text == nullptr || !text->is_string()) {
    reader.fail(place, fmt::format("{}.text must be a string", place));
  }
}

void check_message(FieldReader& reader, const std::string& place, const json::value& message) {
  const json::object* object = message.if_object();
  const json::value* role = object == nullptr ? nullptr : object->if_contains("role");
  if (role == nullptr || !role->is_string()) {
    return reader.fail(place, fmt::format("{} must be an object with a role and a content", place));
  }
  // What else a message has is the template's to read, or not.
  for (const char* name : {"function_call", "audio", "refusal"}) {
    const json::value* field = object->if_contains(name);
    if (field == nullptr || field->is_null()) continue;
    return reader.fail(
        {.message = fmt::format("{}.{} is not supported here; leave it out", place, name),
         .param = fmt::format("{}.{}", place, name),
         .code = "unsupported_parameter"});
  }
  const json::value* content = object->if_contains("content");
  if (content == nullptr || content->is_null() || content->is_string()) return;
  if (!content->is_array()) {
    return reader.fail(place + ".content",
                       fmt::format("{}.content is {}; it must be a string or an array of parts",
                                   place, shown(*content)));
  }
  const json::array& parts = content->get_array();
  for (size_t i = 0; i < parts.size(); ++i) {
    check_part(reader, fmt::format("{}.content[{}]", place, i), parts[i]);
  }
}

void read_messages(FieldReader& reader, const text::TemplateDict& values,
                   text::ChatInputs& inputs) {
  const json::value* field = reader.find("messages");
  const json::array* messages = field == nullptr ? nullptr : field->if_array();
  if (messages == nullptr || messages->empty()) {
    return reader.fail("messages", "messages must be an array with at least one message");
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    check_message(reader, fmt::format("messages[{}]", i), (*messages)[i]);
  }
  if (reader.error() != nullptr) return;
  auto parsed = text::parse_tool_call_arguments(*values.find("messages"));
  if (!parsed) return reader.fail("messages", parsed.error().message);
  inputs.messages = std::move(*parsed);
}

void check_tool(FieldReader& reader, const std::string& place, const json::value& tool) {
  const json::object* object = tool.if_object();
  const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
  const json::value* function = object == nullptr ? nullptr : object->if_contains("function");
  const bool is_function =
      type != nullptr && *type == "function" && function != nullptr && function->is_object();
  if (!is_function) {
    return reader.fail(
        place, fmt::format("{} must be {}", place, R"({"type": "function", "function": {...}})"));
  }
  const json::value* strict = function->get_object().if_contains("strict");
  if (strict == nullptr || strict->is_null() || *strict == false) return;
  reader.fail({.message = fmt::format("{}.function.strict: arguments are not held to their schema "
                                      "here; leave it out",
                                      place),
               .param = place + ".function.strict",
               .code = "unsupported_parameter"});
}

void read_tools(FieldReader& reader, const text::TemplateDict& values, ChatRequest& request) {
  std::string choice = "auto";
  if (const json::value* field = reader.find("tool_choice")) {
    choice = field->is_string() ? std::string(field->get_string()) : "";
    if (choice != "auto" && choice != "none") {
      return reader.fail(
          {.message = fmt::format("tool_choice is {}; only \"auto\" and \"none\" are "
                                  "supported here",
                                  shown(*field)),
           .param = "tool_choice",
           .code = "unsupported_parameter"});
    }
  }
  reader.only("parallel_tool_calls", "[true]");
  const json::value* field = reader.find("tools");
  if (field == nullptr) return;
  const json::array* tools = field->if_array();
  if (tools == nullptr) return reader.fail("tools", "tools must be an array of functions");
  for (size_t i = 0; i < tools->size(); ++i) {
    check_tool(reader, fmt::format("tools[{}]", i), (*tools)[i]);
  }
  auto schemas = text::parse_tools(*field);
  if (!schemas) return reader.fail("tools", schemas.error().message);
  if (tools->empty() || choice == "none") return;
  request.tools = std::move(*schemas);
  request.inputs.tools = *values.find("tools");
}

// A template takes what it does not know for its own default.
void read_effort(FieldReader& reader, std::string& effort) {
  constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                        "high", "xhigh",   "max"};
  reader.string("reasoning_effort", effort);
  if (effort.empty() || std::ranges::find(kEfforts, effort) != kEfforts.end()) return;
  reader.fail("reasoning_effort",
              fmt::format("reasoning_effort is {}; it must be one of {}",
                          shown(json::value(effort)), fmt::join(kEfforts, ", ")));
}

void read_template_options(FieldReader& reader, const text::TemplateDict& values,
                           ChatRequest& request) {
  read_effort(reader, request.reasoning_effort);
  reader.boolean("add_generation_prompt", request.inputs.add_generation_prompt);
  reader.only("continue_final_message", "[false]");
  if (const json::value* documents = reader.find("documents")) {
    const json::array* list = documents->if_array();
    const bool fits = list != nullptr && std::ranges::all_of(*list, [](const json::value& entry) {
                        return entry.is_object();
                      });
    if (!fits) return reader.fail("documents", "documents must be an array of objects");
    request.inputs.documents = *values.find("documents");
  }
  const json::value* field = reader.find("chat_template_kwargs");
  if (field == nullptr) return;
  if (!field->is_object()) {
    return reader.fail("chat_template_kwargs", "chat_template_kwargs must be an object");
  }
  for (const auto& [key, value] : values.find("chat_template_kwargs")->as_dict()->entries()) {
    const std::string& name = key.as_text()->text;
    const bool stands_beside = std::ranges::find(kTemplateFields, name) != kTemplateFields.end() ||
                               (name == "reasoning_effort" && !request.reasoning_effort.empty());
    if (stands_beside) {
      return reader.fail("chat_template_kwargs",
                         fmt::format("{} stands beside chat_template_kwargs, not in it", name));
    }
    request.inputs.extra.emplace_back(name, value);
  }
}

// Both names that OpenAI has had for it.
void read_max_tokens(FieldReader& reader, std::optional<int32_t>& max_tokens) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  std::optional<int32_t> older;
  reader.integer("max_tokens", older, 1, kMax);
  reader.integer("max_completion_tokens", max_tokens, 1, kMax);
  if (older && max_tokens && *older != *max_tokens) {
    reader.fail("max_tokens",
                fmt::format("max_tokens is {} and max_completion_tokens {}; give one of them",
                            *older, *max_tokens));
  }
  if (!max_tokens) max_tokens = older;
}

void read_logprobs(FieldReader& reader, std::optional<int32_t>& top_logprobs) {
  bool wanted = false;
  reader.boolean("logprobs", wanted);
  reader.integer("top_logprobs", top_logprobs, 0, engine::kTopLogprobsMax);
  if (!wanted && top_logprobs.value_or(0) > 0) {
    reader.fail("top_logprobs", "top_logprobs needs \"logprobs\": true");
  }
  top_logprobs = wanted ? std::optional(top_logprobs.value_or(0)) : std::nullopt;
}

}  // namespace

ApiResult<ChatRequest> parse_chat_request(const json::object& body, const TemplateValue& values) {
  const text::TemplateDict* dict = values.as_dict();
  CHECK(dict != nullptr);
  ChatRequest request;
  FieldReader reader(body);
  read_answer_fields(reader, request.answer);
  read_messages(reader, *dict, request.inputs);
  read_tools(reader, *dict, request);
  read_template_options(reader, *dict, request);
  read_max_tokens(reader, request.answer.max_tokens);
  read_logprobs(reader, request.answer.top_logprobs);
  reader.only("echo", "[false]");
  reader.only("modalities", R"([["text"]])");
  reader.only("verbosity", R"(["medium"])");
  reader.only("separate_reasoning", "[true]");
  reader.only("include_reasoning", "[true]");
  TRY(reader.finish());
  return request;
}

ApiResult<ChatRequest> parse_chat_request(std::string_view body) {
  const auto document = base::parse_json(body, "request");
  if (!document) return refuse("", "{}", document.error().message);
  if (!document->is_object())
    return refuse("", "the request is {}; it must be an object", shown(*document));
  const auto values = TemplateValue::parse_json(body, "request");
  if (!values) return refuse("", "{}", values.error().message);
  return parse_chat_request(document->get_object(), *values);
}

}  // namespace ingot::server
