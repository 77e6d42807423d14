#pragma once

#include <string>

namespace ingot::engine {

// What the exception says that is being handled, in one line. For the end of what must not throw:
// it does not throw itself, not even where no memory is left for its words.
// REQUIRES: an exception is being handled.
std::string caught_message() noexcept;

// A copy for one more of those whom it hurt; does not throw either.
std::string copy_of(const std::string& message) noexcept;

}  // namespace ingot::engine
