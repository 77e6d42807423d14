#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// A function that every template has: range, dict, namespace, raise_exception, strftime_now.
struct JinjaFunction {
  using Function = TemplateResult<TemplateValue> (*)(JinjaRuntime&, const JinjaArguments&,
                                                     BoundArguments&);

  std::string_view name;
  JinjaSignature signature{};
  Function function = nullptr;
};

// Null when there is none of this name.
const JinjaFunction* find_jinja_function(std::string_view name);

TemplateResult<TemplateValue> call_function(JinjaRuntime& runtime, const JinjaFunction& function,
                                            const JinjaArguments& arguments);

}  // namespace ingot::text
