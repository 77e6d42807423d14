#pragma once

#include <cstdint>
#include <string>

namespace ingot::base {

// "753,329,940,480"
std::string grouped(uint64_t number);

}  // namespace ingot::base
