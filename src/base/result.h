#pragma once

#include <expected>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace ingot::base {

// What went wrong with input or with the world, in one line that names the thing and the remedy.
struct Error {
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

// return error("{}: 12 bytes are missing; copy the file again", path);
template <typename... Args>
[[nodiscard]] std::unexpected<Error> error(fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace ingot::base

// The value of a Result, or an early return of its error from the enclosing function:
//   auto file = TRY(MappedFile::open(path));      TRY(writer.finish());
#define TRY(...) INGOT_TRY_NAMED(INGOT_JOIN(try_result_, __COUNTER__), __VA_ARGS__)

#define INGOT_JOIN(a, b) INGOT_JOIN_EXPANDED(a, b)
#define INGOT_JOIN_EXPANDED(a, b) a##b
#define INGOT_TRY_NAMED(name, ...)                     \
  __extension__({                                      \
    auto&& name = (__VA_ARGS__);                       \
    if (!name) [[unlikely]] {                          \
      return std::unexpected(std::move(name).error()); \
    }                                                  \
    std::move(name).operator*();                       \
  })
