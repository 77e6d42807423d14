#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::base {
namespace {

using Directories = std::vector<std::filesystem::path>;

// Where the kernel keeps the files of this process's groups, innermost first, by what they limit.
struct Groups {
  Directories unified;  // version 2
  Directories cpu;      // version 1
  Directories memory;   // version 1
};

// Not a number: also "max", which is no limit.
template <typename Number>
std::optional<Number> number(const std::filesystem::path& path) {
  std::ifstream file(path);
  Number value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The value of a "name value" line.
uint64_t field(const std::filesystem::path& path, std::string_view name) {
  std::ifstream file(path);
  std::string key;
  uint64_t value = 0;
  while (file >> key >> value) {
    if (key == name) return value;
  }
  return 0;
}

// A group and those around it, up to where the hierarchy is mounted. Inside a container the path
// may be one of the host: then only the mount point exists, and it is the container's own group.
void add_groups(const std::filesystem::path& mount, std::string group, Directories& directories) {
  while (group.size() > 1) {
    directories.push_back(mount / group.substr(1));
    group.resize(group.rfind('/'));
  }
  directories.push_back(mount);
}

bool lists(const std::string& controllers, std::string_view wanted) {
  std::istringstream stream(controllers);
  for (std::string name; std::getline(stream, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

// From lines "7:cpu,cpuacct:/a/group" and, of version 2, "0::/a/group".
Groups find_groups(const std::filesystem::path& root) {
  const std::filesystem::path mounts = root / "sys/fs/cgroup";
  Groups groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      add_groups(mounts, group, groups.unified);
    } else if (lists(controllers, "cpu")) {
      add_groups(mounts / controllers, group, groups.cpu);
    } else if (lists(controllers, "memory")) {
      add_groups(mounts / controllers, group, groups.memory);
    }
  }
  if (groups.unified.empty()) groups.unified.push_back(mounts);
  return groups;
}

template <typename Value>
void tighten(std::optional<Value>& limit, Value value) {
  limit = limit ? std::min(*limit, value) : value;
}

uint64_t left_of(uint64_t limit, uint64_t charged, uint64_t reclaimable) {
  const uint64_t used = charged - std::min(charged, reclaimable);
  return limit - std::min(limit, used);
}

void take_unified(const std::filesystem::path& group, CgroupLimits& limits) {
  std::ifstream cpu(group / "cpu.max");
  double quota_us = 0;
  double period_us = 0;
  if (cpu >> quota_us >> period_us && period_us > 0) {
    tighten(limits.processors, quota_us / period_us);
  }
  const auto limit = number<uint64_t>(group / "memory.max");
  const auto charged = number<uint64_t>(group / "memory.current");
  if (!limit || !charged) return;
  // Clean page cache is charged to the group, but given up before anything fails.
  uint64_t reclaimable = 0;
  for (const char* kind : {"inactive_file", "active_file", "slab_reclaimable"}) {
    reclaimable += field(group / "memory.stat", kind);
  }
  tighten(limits.memory_left_bytes, left_of(*limit, *charged, reclaimable));
}

void take_cpu(const std::filesystem::path& group, CgroupLimits& limits) {
  const auto quota_us = number<double>(group / "cpu.cfs_quota_us");  // -1: none
  const auto period_us = number<double>(group / "cpu.cfs_period_us");
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return;
  tighten(limits.processors, *quota_us / *period_us);
}

void take_memory(const std::filesystem::path& group, CgroupLimits& limits) {
  // No limit reads as the largest number of whole pages.
  constexpr uint64_t kNoLimit = uint64_t{1} << 62;
  const auto limit = number<uint64_t>(group / "memory.limit_in_bytes");
  const auto charged = number<uint64_t>(group / "memory.usage_in_bytes");
  if (!limit || !charged || *limit >= kNoLimit) return;
  const uint64_t reclaimable = field(group / "memory.stat", "total_inactive_file") +
                               field(group / "memory.stat", "total_active_file");
  tighten(limits.memory_left_bytes, left_of(*limit, *charged, reclaimable));
}

}  // namespace

CgroupLimits cgroup_limits(const std::filesystem::path& root) {
  const Groups groups = find_groups(root);
  CgroupLimits limits;
  for (const auto& group : groups.unified) take_unified(group, limits);
  for (const auto& group : groups.cpu) take_cpu(group, limits);
  for (const auto& group : groups.memory) take_memory(group, limits);
  return limits;
}

}  // namespace ingot::base
