#include "text/tool_schema.h"

#include <algorithm>

namespace ingot::text {
namespace {

namespace json = base::json;

// Schemas nest; what lies deeper counts as unknown.
constexpr int kDepthMax = 8;

JsonTypes type_named(std::string_view name) {
  return {.string = name == "string",
          .number = name == "number" || name == "integer",
          .boolean = name == "boolean",
          .null = name == "null",
          .object = name == "object",
          .array = name == "array"};
}

JsonTypes type_of(const json::value& value) {
  return {.string = value.is_string(),
          .number = value.is_number(),
          .boolean = value.is_bool(),
          .null = value.is_null(),
          .object = value.is_object(),
          .array = value.is_array()};
}

JsonTypes types_of_schema(const json::value& schema, int depth) {
  JsonTypes types;
  const json::object* object = schema.if_object();
  if (object == nullptr || depth > kDepthMax) return types;
  if (const json::value* type = object->if_contains("type")) {
    if (type->is_string()) return type_named(type->get_string());
    if (const json::array* names = type->if_array()) {
      for (const json::value& name : *names) {
        if (name.is_string()) types.add(type_named(name.get_string()));
      }
      return types;
    }
  }
  if (const json::value* constant = object->if_contains("const")) return type_of(*constant);
  if (const json::value* choices = object->if_contains("enum"); choices && choices->is_array()) {
    for (const json::value& choice : choices->get_array()) types.add(type_of(choice));
    return types;
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    const json::value* parts = object->if_contains(key);
    if (parts == nullptr || !parts->is_array()) continue;
    for (const json::value& part : parts->get_array()) {
      const JsonTypes of_part = types_of_schema(part, depth + 1);
      // One alternative that may be anything leaves nothing known about the whole.
      if (of_part.unknown() && std::string_view(key) != "allOf") return {};
      types.add(of_part);
    }
  }
  return types;
}

// The member of an object, or nullptr when there is none or `value` is no object.
const json::value* member(const json::value& value, std::string_view key) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

}  // namespace

bool JsonTypes::allows(const json::value& value) const {
  if (unknown()) return true;
  const JsonTypes type = type_of(value);
  return (string && type.string) || (number && type.number) || (boolean && type.boolean) ||
         (null && type.null) || (object && type.object) || (array && type.array);
}

void JsonTypes::add(const JsonTypes& others) {
  string |= others.string;
  number |= others.number;
  boolean |= others.boolean;
  null |= others.null;
  object |= others.object;
  array |= others.array;
}

JsonTypes types_of_schema(const json::value& schema) { return types_of_schema(schema, 0); }

JsonTypes ToolSchema::types_of(std::string_view argument) const {
  const auto found = std::ranges::find(arguments, argument, &Argument::name);
  return found == arguments.end() ? JsonTypes{} : found->types;
}

base::Result<std::vector<ToolSchema>> parse_tools(const json::value& tools) {
  const json::array* list = tools.if_array();
  if (list == nullptr) return base::error("tools: expected an array of functions");
  std::vector<ToolSchema> schemas;
  for (const json::value& tool : *list) {
    const json::value* wrapped = member(tool, "function");
    const json::value& function = wrapped == nullptr ? tool : *wrapped;
    const json::value* name = member(function, "name");
    if (name == nullptr || !name->is_string() || name->get_string().empty()) {
      return base::error("tools[{}]: no function with a name; expected {}", schemas.size(),
                         R"({"type": "function", "function": {"name": "...", ...}})");
    }
    ToolSchema& schema = schemas.emplace_back();
    schema.name = name->get_string();
    const json::value* parameters = member(function, "parameters");
    const json::value* properties =
        parameters == nullptr ? nullptr : member(*parameters, "properties");
    if (properties == nullptr || !properties->is_object()) continue;
    for (const auto& property : properties->get_object()) {
      schema.arguments.push_back(
          {.name = std::string(property.key()), .types = types_of_schema(property.value())});
    }
  }
  return schemas;
}

}  // namespace ingot::text
