#include "base/grouped.h"

namespace ingot::base {

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (auto at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace ingot::base
