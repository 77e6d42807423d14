#include "text/tool_schema.h"

#include <algorithm>

namespace ingot::text {
namespace {

namespace json = base::json;

// Schemas nest and refer to each other; what lies beyond counts as unknown.
constexpr int kDepthMax = 8;
constexpr int kSchemasMax = 1000;

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

// The types of a schema's own "type".
JsonTypes types_named(const json::value& type) {
  if (type.is_string()) return type_named(type.get_string());
  JsonTypes types;
  const json::array* names = type.if_array();
  if (names == nullptr) return types;
  for (const json::value& name : *names) {
    if (name.is_string()) types.unite(type_named(name.get_string()));
  }
  return types;
}

class SchemaReader {
 public:
  explicit SchemaReader(const json::value& root) : root_(root) {}

  JsonTypes types(const json::value& schema, int depth) {
    JsonTypes types;
    const json::object* object = schema.if_object();
    if (object == nullptr || depth > kDepthMax || ++num_schemas_ > kSchemasMax) return types;
    if (const json::value* type = object->if_contains("type")) types = types_named(*type);
    if (const json::value* constant = object->if_contains("const")) {
      types.intersect(type_of(*constant));
    }
    if (const json::value* choices = object->if_contains("enum"); choices && choices->is_array()) {
      JsonTypes of_choices;
      for (const json::value& choice : choices->get_array()) of_choices.unite(type_of(choice));
      types.intersect(of_choices);
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      const json::value* branches = object->if_contains(key);
      if (branches && branches->is_array()) {
        types.intersect(any_of(branches->get_array(), depth + 1));
      }
    }
    const json::value* parts = object->if_contains("allOf");
    if (parts && parts->is_array()) {
      for (const json::value& part : parts->get_array()) {
        types.intersect(this->types(part, depth + 1));
      }
    }
    if (const json::value* target = referenced(*object)) {
      types.intersect(this->types(*target, depth + 1));
    }
    return types;
  }

 private:
  JsonTypes any_of(const json::array& branches, int depth) {
    JsonTypes all;
    for (const json::value& branch : branches) {
      const JsonTypes of_branch = types(branch, depth);
      if (of_branch.unknown()) return {};  // it may be anything
      all.unite(of_branch);
    }
    return all;
  }

  // What "$ref": "#/..." stands for, as far as it is here.
  const json::value* referenced(const json::object& schema) const {
    const json::value* reference = schema.if_contains("$ref");
    if (reference == nullptr || !reference->is_string()) return nullptr;
    const std::string_view pointer = reference->get_string();
    if (!pointer.starts_with('#')) return nullptr;
    boost::system::error_code failure;
    return root_.find_pointer(pointer.substr(1), failure);
  }

  const json::value& root_;
  int num_schemas_ = 0;
};

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

void JsonTypes::unite(const JsonTypes& others) {
  string |= others.string;
  number |= others.number;
  boolean |= others.boolean;
  null |= others.null;
  object |= others.object;
  array |= others.array;
}

void JsonTypes::intersect(const JsonTypes& others) {
  if (others.unknown()) return;
  if (unknown()) {
    *this = others;
    return;
  }
  string &= others.string;
  number &= others.number;
  boolean &= others.boolean;
  null &= others.null;
  object &= others.object;
  array &= others.array;
}

JsonTypes types_of_schema(const json::value& schema, const json::value& root) {
  return SchemaReader(root).types(schema, 0);
}

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
      schema.arguments.push_back({.name = std::string(property.key()),
                                  .types = types_of_schema(property.value(), *parameters)});
    }
  }
  return schemas;
}

}  // namespace ingot::text
