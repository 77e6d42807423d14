#pragma once

#include "text/jinja_syntax.h"
#include "text/template_error.h"

namespace ingot::text {

// Computes what Jinja computes when it compiles a template, and puts the value in its place: what
// has no variable, no call and no filter that calls others by name. It has to be done because it
// shows: a slice of what has none is undefined here and an error in a render, so {{ (1)[1:] }}
// prints nothing. What fails stays as it is and fails in the render, if that comes to it.
// Errors: kSyntax, at a constant that is infinite or no number and not printed at once. Jinja
// writes it into its program as a name that it has not.
TemplateResult<void> fold_constants(JinjaTemplate& parsed);

}  // namespace ingot::text
