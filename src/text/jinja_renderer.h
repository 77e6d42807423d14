#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_runtime.h"
#include "text/jinja_syntax.h"
#include "text/prompt_text.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

using TemplateVariables = std::vector<std::pair<std::string, TemplateValue>>;

// Runs a template. What it writes itself, text and string literals, is trusted; bytes of strings
// in the variables keep whether they are data. Of variables that come twice the last one holds.
// Errors have the line at which they happened.
TemplateResult<PromptText> render_jinja(const JinjaTemplate& parsed,
                                        const TemplateVariables& variables, const std::tm& now,
                                        const RenderBudget& budget = {});

// Computes expressions without a template around them, in one budget. What it gives may not outlive
// it. One thread's.
class JinjaEvaluator {
 public:
  explicit JinjaEvaluator(const RenderBudget& budget);
  ~JinjaEvaluator();
  JinjaEvaluator(const JinjaEvaluator&) = delete;
  JinjaEvaluator& operator=(const JinjaEvaluator&) = delete;

  TemplateResult<TemplateValue> evaluate(const JinjaExpression& expression);
  // What {{ }} prints of a value.
  TemplateResult<PromptText> print(const TemplateValue& value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ingot::text
