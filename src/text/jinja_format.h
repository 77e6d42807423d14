#pragma once

#include <string>
#include <string_view>

#include "text/jinja_arguments.h"
#include "text/jinja_runtime.h"
#include "text/prompt_text.h"
#include "text/prompt_text_builder.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// What Python makes of values when it prints them, byte for byte.

// type(value).__name__
std::string_view type_name(const TemplateValue& value);

// repr(float): the shortest digits that read back, 1.0, 1e+20, 1e-07, inf, nan.
std::string float_repr(double value);

// str(value). Errors: kUnsupported for what Python prints by its address, such as a generator.
TemplateResult<PromptText> to_text(JinjaRuntime& runtime, const TemplateValue& value);
TemplateResult<void> append_text(JinjaRuntime& runtime, PromptTextBuilder& out,
                                 const TemplateValue& value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool has_indent = false;  // then indent starts each line, once a level
  PromptText indent;
  PromptText item_separator;
  PromptText key_separator;
};

// json.dumps(value). Errors: kType for what JSON has no form for.
TemplateResult<PromptText> to_json(JinjaRuntime& runtime, const TemplateValue& value,
                                   const JsonStyle& style);

// format % values.
TemplateResult<PromptText> percent_format(JinjaRuntime& runtime, const PromptText& format,
                                          const TemplateValue& values);

// format.format(arguments), with names, numbers, attributes and items, !s and !r, and the plain
// layouts: fill, alignment, width, precision, and s, d, f.
TemplateResult<PromptText> brace_format(JinjaRuntime& runtime, const PromptText& format,
                                        const JinjaArguments& arguments);

}  // namespace ingot::text
