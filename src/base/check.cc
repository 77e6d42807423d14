#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace ingot::base {

void check_failed(std::string_view condition, std::string_view detail, std::source_location where) {
  std::fprintf(stderr, "%s:%u: CHECK failed: %.*s%s%.*s\n", where.file_name(), where.line(),
               static_cast<int>(condition.size()), condition.data(), detail.empty() ? "" : ": ",
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace ingot::base
