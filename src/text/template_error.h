#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/result.h"

namespace ingot::text {

// Why a template did not load or render. As a base::Error its message is the whole line, with the
// template's name and the line in it; TRY hands it on in functions that return base::Result.
struct TemplateError : base::Error {
  enum class Kind {
    kSyntax,       // the template is wrong, or uses what we lack; only at load
    kUndefined,    // an undefined value was used
    kSecurity,     // the sandbox forbids it
    kType,         // an operation on values of the wrong type
    kValue,        // right type, wrong value: an index, a division by zero, a number too large
    kRaised,       // the template itself refused the conversation: raise_exception(reason)
    kLimit,        // the render took more steps, depth or memory than the bounds allow
    kUnsupported,  // correct Jinja that only a value seen at render time showed we lack
  };

  Kind kind = Kind::kSyntax;
  size_t line = 0;     // from 1; 0: not known yet
  std::string reason;  // without name and line; for kRaised exactly what the template said
};

template <typename T>
using TemplateResult = std::expected<T, TemplateError>;

// return fail(TemplateError::Kind::kType, "{} has no len()", type_name(value));
template <typename... Args>
[[nodiscard]] std::unexpected<TemplateError> fail(TemplateError::Kind kind,
                                                  fmt::format_string<Args...> format,
                                                  Args&&... args) {
  TemplateError failure;
  failure.kind = kind;
  failure.reason = fmt::format(format, std::forward<Args>(args)...);
  return std::unexpected(std::move(failure));
}

}  // namespace ingot::text
