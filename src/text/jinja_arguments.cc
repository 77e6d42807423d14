#include "text/jinja_arguments.h"

#include <algorithm>

namespace ingot::text {
namespace {

// Where a keyword goes; num_parameters when nowhere.
size_t place_of(const JinjaSignature& signature, std::string_view keyword) {
  const auto begin = signature.parameters.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(signature.num_parameters);
  return keyword.empty() ? signature.num_parameters
                         : static_cast<size_t>(std::find(begin, end, keyword) - begin);
}

// The first thing wrong with a call; empty when it fits.
template <typename Keywords>
std::string complaint(std::string_view callee, const JinjaSignature& signature,
                      size_t num_positional, const Keywords& keywords) {
  if (signature.is_open) return {};
  if (num_positional > signature.num_parameters) {
    return fmt::format("{} takes at most {} arguments, not {}", callee, signature.num_parameters,
                       num_positional);
  }
  std::array<bool, JinjaSignature::kParametersMax> given{};
  std::fill_n(given.begin(), num_positional, true);
  for (const auto& [keyword, value] : keywords) {
    const size_t place = place_of(signature, keyword);
    if (place == signature.num_parameters) {
      return fmt::format("{} has no argument named '{}'", callee, keyword);
    }
    if (given[place]) return fmt::format("{} gets argument '{}' twice", callee, keyword);
    given[place] = true;
  }
  for (size_t i = 0; i < signature.num_required; ++i) {
    if (!given[i]) {
      return fmt::format("{} needs {} argument{}", callee, signature.num_required,
                         signature.num_required == 1 ? "" : "s");
    }
  }
  return {};
}

}  // namespace

TemplateResult<BoundArguments> bind_arguments(std::string_view callee,
                                              const JinjaSignature& signature,
                                              const JinjaArguments& arguments) {
  const std::string wrong =
      complaint(callee, signature, arguments.positional.size(), arguments.keywords);
  if (!wrong.empty()) return fail(TemplateError::Kind::kType, "{}", wrong);
  BoundArguments bound;
  if (signature.is_open) return bound;
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
  for (const auto& [keyword, value] : arguments.keywords) {
    bound[place_of(signature, keyword)] = value;
  }
  return bound;
}

std::string complaint_about(std::string_view callee, const JinjaSignature& signature,
                            const JinjaCallArguments& arguments) {
  if (arguments.rest != nullptr || arguments.options != nullptr) return {};
  return complaint(callee, signature, arguments.positional.size(), arguments.keywords);
}

}  // namespace ingot::text
