#include "engine/caught_exception.h"

#include <algorithm>
#include <exception>
#include <new>

#include <fmt/format.h>

namespace ingot::engine {
namespace {

// So short that a string holds it without allocating.
constexpr const char* kShortMessage = "out of memory";

std::string describe(const std::exception_ptr& caught) {
  try {
    std::rethrow_exception(caught);
  } catch (const std::bad_alloc&) {
    return "the step ran out of memory; fewer --kv-tokens leave it more";
  } catch (const std::exception& exception) {
    std::string message = fmt::format("the step failed: {}", exception.what());
    std::ranges::replace(message, '\n', ' ');
    return message;
  } catch (...) {
    return "the step failed: an exception without a message";
  }
}

}  // namespace

std::string caught_message() noexcept {
  try {
    return describe(std::current_exception());
  } catch (...) {
    return kShortMessage;
  }
}

std::string copy_of(const std::string& message) noexcept {
  try {
    return message;
  } catch (...) {
    return kShortMessage;
  }
}

}  // namespace ingot::engine
