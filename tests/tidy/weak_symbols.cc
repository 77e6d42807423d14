#include "tidy/weak_symbols.h"

namespace ingot::tidy {

Findings check_weak_symbols(const std::string& object, std::string_view nm_output) {
  Findings findings;
  for (std::string_view line : lines_of(nm_output)) {
    // "0000000000000000 W name"; an undefined symbol has spaces for its address.
    const size_t space = line.find(' ');
    if (space == 0 || space == std::string_view::npos || line.size() < space + 4) continue;
    const char type = line[space + 1];
    const std::string_view name = line.substr(space + 3);
    const bool weak = type == 'W' || type == 'V' || type == 'u';
    // A pointer to the exception handler, the same in every file, and no code.
    if (weak && !name.starts_with("DW.ref.")) {
      findings.push_back(
          {object, 0,
           "weak symbol " + std::string(name) + "; give it internal linkage or move it out"});
    }
  }
  return findings;
}

std::vector<std::string> wide_objects(std::string_view objects) {
  std::vector<std::string> wide;
  for (const std::string_view object : lines_of(objects)) {
    if (object.ends_with("_avx2.cc.o") || object.ends_with("_avx512.cc.o")) {
      wide.emplace_back(object);
    }
  }
  return wide;
}

}  // namespace ingot::tidy
