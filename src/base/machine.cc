#include "base/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace ingot::base {
namespace {

// The value of a "Name: value" line, or of "Name value".
std::optional<std::string> field(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(name)) continue;
    const size_t start = line.find_first_not_of(" \t:", name.size());
    if (start != std::string::npos) return line.substr(start);
  }
  return std::nullopt;
}

std::optional<uint64_t> number(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // also for "max", which is no limit
}

// Where this process's cgroup (version 2) and those around it keep their files, innermost first:
// each limits all that are inside.
std::vector<std::string> cgroup_directories() {
  constexpr const char* kRoot = "/sys/fs/cgroup";
  std::vector<std::string> directories;
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); group.size() > 1;) {
      directories.push_back(kRoot + group);
      group.resize(group.rfind('/'));
    }
  }
  directories.emplace_back(kRoot);
  return directories;
}

// What the limit of one cgroup leaves; nothing when it has none.
std::optional<uint64_t> memory_left_in(const std::string& group) {
  const auto limit = number(group + "/memory.max");
  const auto charged = number(group + "/memory.current");
  if (!limit || !charged) return std::nullopt;
  // Clean page cache is charged to the group, but given up before anything fails.
  uint64_t reclaimable = 0;
  for (const char* kind : {"inactive_file", "active_file", "slab_reclaimable"}) {
    uint64_t bytes = 0;
    if (const auto text = field(group + "/memory.stat", kind)) std::istringstream(*text) >> bytes;
    reclaimable += bytes;
  }
  const uint64_t used = *charged - std::min(*charged, reclaimable);
  return *limit - std::min(*limit, used);
}

}  // namespace

std::string processor_name() {
  return field("/proc/cpuinfo", "model name").value_or("unknown processor");
}

int usable_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int threads = 1;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) threads = std::max(1, CPU_COUNT(&mask));
  for (const std::string& group : cgroup_directories()) {
    std::ifstream quota_file(group + "/cpu.max");
    double quota_us = 0;
    double period_us = 0;
    if (quota_file >> quota_us >> period_us && period_us > 0) {
      threads = std::min(threads, std::max(1, static_cast<int>(std::ceil(quota_us / period_us))));
    }
  }
  return threads;
}

uint64_t resident_memory_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t available_memory_bytes() {
  uint64_t available = std::numeric_limits<uint64_t>::max();
  if (const auto text = field("/proc/meminfo", "MemAvailable")) {
    std::istringstream stream(*text);
    uint64_t kibibytes = 0;
    if (stream >> kibibytes) available = kibibytes * 1024;
  }
  for (const std::string& group : cgroup_directories()) {
    if (const auto left = memory_left_in(group)) available = std::min(available, *left);
  }
  return available;
}

}  // namespace ingot::base
