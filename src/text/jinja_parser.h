#pragma once

#include <string_view>

#include "text/jinja_syntax.h"
#include "text/template_error.h"

namespace ingot::text {

// The tree of a template, with its filters and tests looked up and its scopes worked out.
// Errors are kSyntax, with line and column: what Jinja refuses, and what we lack: a statement, a
// filter, a test, a method or an argument.
TemplateResult<JinjaTemplate> parse_jinja(std::string_view source);

}  // namespace ingot::text
