#pragma once

#include <cstddef>
#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// value|name(arguments)
struct JinjaFilter {
  using Function = TemplateResult<TemplateValue> (*)(JinjaRuntime&, const TemplateValue& value,
                                                     const JinjaArguments&, BoundArguments&);
  enum class Names { kNothing, kFilter, kTest };

  std::string_view name;
  JinjaSignature signature{};
  Function function = nullptr;
  Names names = Names::kNothing;  // what the argument name_argument names: see map and select
  size_t name_argument = 0;
};

// Null when there is none of this name.
const JinjaFilter* find_jinja_filter(std::string_view name);

TemplateResult<TemplateValue> apply_filter(JinjaRuntime& runtime, const JinjaFilter& filter,
                                           const TemplateValue& value,
                                           const JinjaArguments& arguments);

// The filters that work on lists and other things to iterate over; they have a file of their own.
const JinjaFilter* find_list_filter(std::string_view name);

}  // namespace ingot::text
