#include "text/tool_call_arguments.h"

#include <string>

#include <fmt/format.h>

namespace ingot::text {
namespace {

using base::Result;

// `dict` with another value for a key that it has.
TemplateValue with(const TemplateDict& dict, std::string_view name, const TemplateValue& value) {
  TemplateDict changed;
  for (const auto& [key, old] : dict.entries()) {
    const PromptText* text = key.as_text();
    changed.set(key, text != nullptr && text->text == name ? value : old);
  }
  return TemplateValue::dict(std::move(changed));
}

Result<TemplateValue> parse_arguments(const TemplateValue& arguments, const std::string& place) {
  const PromptText* text = arguments.as_text();
  if (text == nullptr) return arguments;
  if (text->text.empty()) return TemplateValue::dict({});
  TemplateValue parsed = TRY(TemplateValue::parse_json(text->text, place));
  if (parsed.as_dict() == nullptr) return base::error("{}: expected a JSON object", place);
  return parsed;
}

// A call, or the function in it, with its arguments parsed.
Result<TemplateValue> parse_call(const TemplateValue& call, const std::string& place) {
  const TemplateDict* dict = call.as_dict();
  if (dict == nullptr) return call;
  if (const TemplateValue* function = dict->find("function")) {
    return with(*dict, "function", TRY(parse_call(*function, place + ".function")));
  }
  const TemplateValue* arguments = dict->find("arguments");
  if (arguments == nullptr) return call;
  return with(*dict, "arguments", TRY(parse_arguments(*arguments, place + ".arguments")));
}

}  // namespace

Result<TemplateValue> parse_tool_call_arguments(const TemplateValue& messages) {
  const TemplateList* list = messages.as_sequence();
  if (list == nullptr) return messages;
  TemplateList changed;
  for (size_t i = 0; i < list->size(); ++i) {
    const TemplateDict* message = (*list)[i].as_dict();
    const TemplateValue* calls = message == nullptr ? nullptr : message->find("tool_calls");
    if (calls == nullptr || calls->as_sequence() == nullptr) {
      changed.push_back((*list)[i]);
      continue;
    }
    TemplateList parsed;
    for (const TemplateValue& call : *calls->as_sequence()) {
      const std::string place = fmt::format("messages[{}].tool_calls[{}]", i, parsed.size());
      parsed.push_back(TRY(parse_call(call, place)));
    }
    changed.push_back(with(*message, "tool_calls", TemplateValue::list(std::move(parsed))));
  }
  return TemplateValue::list(std::move(changed));
}

}  // namespace ingot::text
