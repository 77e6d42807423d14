#include "base/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include <unistd.h>

#include "base/cgroup.h"
#include "base/processors.h"

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

}  // namespace

std::string processor_name() {
  return field("/proc/cpuinfo", "model name").value_or("unknown processor");
}

int usable_threads() {
  const std::vector<Processor> processors = describe_processors(allowed_processors());
  return usable_threads(count_cores(processors), cgroup_limits().processors);
}

int usable_threads(int num_cores, std::optional<double> quota_processors) {
  const double limit = std::min<double>(num_cores, quota_processors.value_or(num_cores));
  return std::max(1, static_cast<int>(std::floor(limit)));
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
  return std::min(available, cgroup_limits().memory_left_bytes.value_or(available));
}

}  // namespace ingot::base
