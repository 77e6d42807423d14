#pragma once

#include <source_location>
#include <string_view>

namespace ingot::base {

// Prints "file:line: CHECK failed: condition: detail" to stderr and aborts. Never returns.
[[noreturn]] void check_failed(std::string_view condition, std::string_view detail,
                               std::source_location where = std::source_location::current());

}  // namespace ingot::base

// Stops the process when one of our own invariants is broken; on in release builds too. Never use
// it for input from outside: that is a Result. A second argument says more: CHECK(a == b, "rows").
#define CHECK(condition, ...)                                                 \
  do {                                                                        \
    if (!(condition)) [[unlikely]] {                                          \
      ::ingot::base::check_failed(#condition, std::string_view{__VA_ARGS__}); \
    }                                                                         \
  } while (false)
