#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_syntax.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// The values that a call passes.
struct JinjaArguments {
  TemplateList positional;
  std::vector<std::pair<std::string, TemplateValue>> keywords;
};

// What a filter, test, method or function takes besides what it is applied to. A parameter named
// "" can be given by position only.
struct JinjaSignature {
  static constexpr size_t kParametersMax = 5;

  std::array<std::string_view, kParametersMax> parameters{};
  size_t num_parameters = 0;
  size_t num_required = 0;
  bool is_open = false;  // takes whatever comes and looks at it itself
};

constexpr JinjaSignature takes_nothing() { return {}; }
constexpr JinjaSignature takes_anything() { return {.is_open = true}; }
template <typename... Names>
constexpr JinjaSignature takes(size_t num_required, Names... names) {
  return {.parameters = {std::string_view(names)...},
          .num_parameters = sizeof...(names),
          .num_required = num_required};
}

// Arguments by parameter. Those left out have no value.
using BoundArguments = std::array<std::optional<TemplateValue>, JinjaSignature::kParametersMax>;

// Errors: kType, naming `callee` and the argument that is missing, unknown or too much.
TemplateResult<BoundArguments> bind_arguments(std::string_view callee,
                                              const JinjaSignature& signature,
                                              const JinjaArguments& arguments);

// What bind_arguments will say of a call as it is written, as far as that shows; empty: nothing.
std::string complaint_about(std::string_view callee, const JinjaSignature& signature,
                            const JinjaCallArguments& arguments);

}  // namespace ingot::text
