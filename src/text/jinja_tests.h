#pragma once

#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// value is name(arguments)
struct JinjaTest {
  using Function = TemplateResult<bool> (*)(JinjaRuntime&, const TemplateValue& value,
                                            const BoundArguments&);

  std::string_view name;
  JinjaSignature signature{};
  Function function = nullptr;
};

// Null when there is none of this name.
const JinjaTest* find_jinja_test(std::string_view name);

TemplateResult<bool> apply_test(JinjaRuntime& runtime, const JinjaTest& test,
                                const TemplateValue& value, const JinjaArguments& arguments);

}  // namespace ingot::text
