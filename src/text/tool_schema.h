#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ingot::text {

// The JSON types that a schema allows. Without any of them nothing is known and all are allowed.
struct JsonTypes {
  bool string = false;
  bool number = false;  // integers too
  bool boolean = false;
  bool null = false;
  bool object = false;
  bool array = false;

  bool unknown() const { return !(string || number || boolean || null || object || array); }
  bool only_string() const { return string && !(number || boolean || null || object || array); }
  bool allows(const base::json::value& value) const;
  void unite(const JsonTypes& others);
  void intersect(const JsonTypes& others);
};

// What all of a JSON schema's "type", "enum", "const", "anyOf", "oneOf", "allOf" and "$ref" allow
// together. References are looked up in `root`.
JsonTypes types_of_schema(const base::json::value& schema, const base::json::value& root);

// What a tool's arguments may be, from the "tools" of a request.
struct ToolSchema {
  struct Argument {
    std::string name;
    JsonTypes types;
  };
  std::string name;
  std::vector<Argument> arguments;

  // Nothing is known about an argument that the schema does not name.
  JsonTypes types_of(std::string_view argument) const;
};

// Takes OpenAI's form, {"type": "function", "function": {...}}, and the function alone.
// Errors: something that is no tool, or one without a name.
base::Result<std::vector<ToolSchema>> parse_tools(const base::json::value& tools);

}  // namespace ingot::text
