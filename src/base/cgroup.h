#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ingot::base {

// What the cgroups around this process leave it, versions 1 and 2 alike: the tightest of its own
// group and all that enclose it. Nothing where no group sets a limit.
struct CgroupLimits {
  std::optional<double> processors;           // seconds of processor time a second
  std::optional<uint64_t> memory_left_bytes;  // page cache that can be given up counted as left
};

// `root` is "/", or a directory of files that stand for it in a test.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace ingot::base
