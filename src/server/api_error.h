#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "base/json.h"

namespace ingot::server {

// Why a request has no answer, as an OpenAI client is told: an HTTP status and a body.
struct ApiError {
  int status = 400;
  std::string message = {};  // one line that names field, value and remedy
  std::string type = "invalid_request_error";
  std::string param = {};  // the field; empty: none is to blame
  std::string code = {};   // for programs; empty: the status says it all
};

template <typename T>
using ApiResult = std::expected<T, ApiError>;

// A field whose value cannot be taken.
//
//   return refuse("n", "n is {}; it must be from 1 to {}", n, kChoicesMax);
template <typename... Args>
[[nodiscard]] std::unexpected<ApiError> refuse(std::string_view param,
                                               fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(ApiError{.message = fmt::format(format, std::forward<Args>(args)...),
                                  .param = std::string(param)});
}

// {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}; what is empty is null.
base::json::object error_body(const ApiError& error);

// The text, or null where it is empty.
base::json::value text_or_null(std::string_view text);

// What somebody wrote, for an error line: at most 64 bytes of it, in whole characters.
std::string shown(std::string_view utf8);
// The same of a JSON value, as JSON.
std::string shown(const base::json::value& value);

}  // namespace ingot::server
