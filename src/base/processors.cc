#include "base/processors.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <sched.h>

#include "base/check.h"
#include "base/index_range.h"

namespace ingot::base {
namespace {

// More processors than any machine has; the kernel refuses a mask that is shorter than its own.
constexpr int kProcessorsMax = 1 << 14;

// A set of processors of any number, which cpu_set_t is not.
class ProcessorSet {
 public:
  ProcessorSet() : set_(CPU_ALLOC(kProcessorsMax)) {
    CHECK(set_ != nullptr);
    CPU_ZERO_S(size_bytes(), get());
  }
  static size_t size_bytes() { return CPU_ALLOC_SIZE(kProcessorsMax); }
  cpu_set_t* get() const { return set_.get(); }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  std::unique_ptr<cpu_set_t, Free> set_;
};

std::vector<int> read_number_list(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return parse_number_list(line);
}

// The numbers of one share, from the node that has most of them.
std::vector<int> within_one_node(std::span<const Processor> share) {
  std::map<int, std::vector<int>> by_node;
  for (const Processor& processor : share) by_node[processor.node].push_back(processor.number);
  const auto most =
      std::ranges::max_element(by_node, {}, [](const auto& entry) { return entry.second.size(); });
  return most->second;
}

}  // namespace

std::vector<int> parse_number_list(std::string_view text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = 0;
    const auto number = std::from_chars(at, end, first);
    if (number.ec != std::errc() || first < 0) return {};
    int last = first;
    at = number.ptr;
    if (at != end && *at == '-') {
      const auto upper = std::from_chars(at + 1, end, last);
      if (upper.ec != std::errc() || last < first || last >= kProcessorsMax) return {};
      at = upper.ptr;
    }
    for (int value = first; value <= last; ++value) numbers.push_back(value);
    if (at != end && *at++ != ',') return {};
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<int> allowed_processors() {
  const ProcessorSet set;
  if (::sched_getaffinity(0, ProcessorSet::size_bytes(), set.get()) != 0) return {0};
  std::vector<int> numbers;
  for (int number = 0; number < kProcessorsMax; ++number) {
    if (CPU_ISSET_S(static_cast<size_t>(number), ProcessorSet::size_bytes(), set.get())) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

std::vector<Processor> describe_processors(std::span<const int> numbers,
                                           const std::filesystem::path& system) {
  std::map<int, int> nodes;
  for (const int node : read_number_list(system / "node/has_cpu")) {
    for (const int number : read_number_list(system / fmt::format("node/node{}/cpulist", node))) {
      nodes[number] = node;
    }
  }
  std::vector<Processor> processors;
  for (const int number : numbers) {
    // The lowest number among those that share the core names it.
    const std::vector<int> siblings =
        read_number_list(system / fmt::format("cpu/cpu{}/topology/thread_siblings_list", number));
    const auto node = nodes.find(number);
    processors.push_back({.number = number,
                          .core = siblings.empty() ? number : siblings.front(),
                          .node = node == nodes.end() ? 0 : node->second});
  }
  return processors;
}

int count_cores(std::span<const Processor> processors) {
  std::set<int> cores;
  for (const Processor& processor : processors) cores.insert(processor.core);
  return static_cast<int>(cores.size());
}

std::vector<std::vector<int>> share_processors(std::vector<Processor> processors, int size) {
  if (std::ssize(processors) < size) return {};
  const auto by_place = [](const Processor& a, const Processor& b) {
    return std::tie(a.node, a.core, a.number) < std::tie(b.node, b.core, b.number);
  };
  std::ranges::sort(processors, by_place);
  std::vector<std::vector<Processor>> cores;
  for (const Processor& processor : processors) {
    const bool new_core = cores.empty() || cores.back().front().core != processor.core;
    if (new_core) cores.emplace_back();
    cores.back().push_back(processor);
  }
  std::vector<std::vector<int>> shares;
  if (std::ssize(cores) >= size) {
    for (int member = 0; member < size; ++member) {
      std::vector<Processor> share;
      const IndexRange range = share_of(std::ssize(cores), member, size);
      for (int64_t i = range.begin; i < range.end; ++i) {
        const std::vector<Processor>& core = cores[static_cast<size_t>(i)];
        share.insert(share.end(), core.begin(), core.end());
      }
      shares.push_back(within_one_node(share));
    }
    return shares;
  }
  std::vector<Processor> chosen;
  for (size_t turn = 0; std::ssize(chosen) < size; ++turn) {
    for (const std::vector<Processor>& core : cores) {
      if (turn < core.size() && std::ssize(chosen) < size) chosen.push_back(core[turn]);
    }
  }
  std::ranges::sort(chosen, by_place);
  for (const Processor& processor : chosen) shares.push_back({processor.number});
  return shares;
}

bool confine_thread(pthread_t thread, std::span<const int> processors) {
  CHECK(!processors.empty());
  const ProcessorSet set;
  for (const int number : processors) {
    CPU_SET_S(static_cast<size_t>(number), ProcessorSet::size_bytes(), set.get());
  }
  return ::pthread_setaffinity_np(thread, ProcessorSet::size_bytes(), set.get()) == 0;
}

}  // namespace ingot::base
