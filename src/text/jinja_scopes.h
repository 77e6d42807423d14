#pragma once

#include "text/jinja_syntax.h"

namespace ingot::text {

// Works out what Jinja decides when it compiles a template: JinjaTemplate::variables, and in every
// statement that opens a scope its hidden names and what macros read.
//
// A set makes its name local to the scope it stands in: from the start of the scope on, not only
// from the set on, unless the scope reads the name first or sets it in one branch only. So in
// {% set x %}{{ x }}{% endset %} the x inside is undefined, whatever came in from outside.
void resolve_scopes(JinjaTemplate& parsed);

}  // namespace ingot::text
