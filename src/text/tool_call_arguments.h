#pragma once

#include "base/result.h"
#include "text/template_value.h"

namespace ingot::text {

// A request's messages with the arguments of their tool calls as dicts. In OpenAI's form they are
// JSON text (messages[i].tool_calls[j].function.arguments), and templates go through a dict. What
// has another form is left as it is. Empty arguments are an empty dict.
// Errors: arguments that are no JSON object, with their place.
base::Result<TemplateValue> parse_tool_call_arguments(const TemplateValue& messages);

}  // namespace ingot::text
