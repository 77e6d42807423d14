#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// A method of Python's str, list, tuple or dict, or of Jinja's loop.
struct JinjaMethod {
  using Function = TemplateResult<TemplateValue> (*)(JinjaRuntime&, const TemplateValue& self,
                                                     const JinjaArguments&, BoundArguments&);

  std::string_view name;
  JinjaSignature signature{};
  Function function = nullptr;  // null: it exists in Python, and not here
  bool is_forbidden = false;    // it would change the value, which the sandbox does not allow
};

// Null when a value of this type has no such method.
const JinjaMethod* find_jinja_method(const TemplateValue& self, std::string_view name);

// Whether some type has a method of this name which a template may try to call.
bool is_jinja_method_name(std::string_view name);

TemplateResult<TemplateValue> call_method(JinjaRuntime& runtime,
                                          const TemplateValue::BoundMethod& method,
                                          const JinjaArguments& arguments);

// The methods of str; they have a file of their own.
const JinjaMethod* find_string_method(std::string_view name);

}  // namespace ingot::text
