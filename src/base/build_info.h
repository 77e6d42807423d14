#pragma once

#include <string_view>

namespace ingot::base {

// What was built: version of the project, commit ("-dirty" behind it when the tree had changes,
// "unknown" outside a checkout), compiler with version, CMake build type.
struct BuildInfo {
  std::string_view version, commit, compiler, build_type;
};

const BuildInfo& build_info();

}  // namespace ingot::base
