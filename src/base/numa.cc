#include "base/numa.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"

namespace ingot::base {
namespace {

// A set of memory nodes as the system takes it.
class NodeMask {
 public:
  // As many as any kernel is built for; it refuses a mask to read into that is shorter than its
  // own.
  static constexpr int kNodesMax = 1024;

  NodeMask() = default;
  explicit NodeMask(std::span<const int> nodes) {
    for (const int node : nodes) {
      CHECK(0 <= node && node < kNodesMax);
      words_[node / kWordBits] |= 1UL << (node % kWordBits);
    }
  }

  std::vector<int> nodes() const {
    std::vector<int> result;
    for (int node = 0; node < kNodesMax; ++node) {
      if ((words_[node / kWordBits] >> (node % kWordBits) & 1) != 0) result.push_back(node);
    }
    return result;
  }

  unsigned long* words() { return words_; }
  const unsigned long* words() const { return words_; }

 private:
  static constexpr int kWordBits = sizeof(unsigned long) * CHAR_BIT;
  unsigned long words_[kNodesMax / kWordBits] = {};
};

Status set_policy(std::span<std::byte> mapping, int mode, const NodeMask& nodes) {
  // The kernel takes one bit less than it is told.
  if (::mbind(mapping.data(), mapping.size(), mode, nodes.words(), NodeMask::kNodesMax + 1, 0) ==
      0) {
    return {};
  }
  return error("cannot choose the memory node of {} bytes: {}", mapping.size(),
               std::strerror(errno));
}

MemoryRights memory_rights() {
  MemoryRights rights;
  NodeMask allowed;
  if (::get_mempolicy(nullptr, allowed.words(), NodeMask::kNodesMax, nullptr,
                      MPOL_F_MEMS_ALLOWED) == 0) {
    rights.allowed_nodes = allowed.nodes();
  }
  int mode = MPOL_DEFAULT;
  if (::get_mempolicy(&mode, nullptr, 0, nullptr, 0) == 0) {
    rights.has_policy = mode != MPOL_DEFAULT && mode != MPOL_LOCAL;
  }
  // Containers often forbid it, and only trying tells.
  const auto size_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* page = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    rights.may_choose =
        set_policy({static_cast<std::byte*>(page), size_bytes}, MPOL_DEFAULT, {}).has_value();
    ::munmap(page, size_bytes);
  }
  return rights;
}

}  // namespace

std::string MemoryPlacement::line() const {
  switch (kind) {
    case Kind::kOneNode:
      return "one memory node";
    case Kind::kInterleaved:
      return fmt::format("memory spread over {} nodes", nodes.size());
    case Kind::kGiven:
      return "memory where the process's policy puts it";
    case Kind::kRefused:
      return fmt::format(
          "{} memory nodes, and the system does not let a process choose: memory where it is "
          "first touched; start it with numactl --interleave=all",
          nodes.size());
  }
  return {};
}

MemoryPlacement choose_memory_placement(std::span<const Processor> processors,
                                        const MemoryRights& rights) {
  std::set<int> nodes;
  for (const Processor& processor : processors) {
    const auto& allowed = rights.allowed_nodes;
    if (!allowed || std::ranges::find(*allowed, processor.node) != allowed->end()) {
      nodes.insert(processor.node);
    }
  }
  using enum MemoryPlacement::Kind;
  MemoryPlacement placement{.kind = kInterleaved, .nodes = {nodes.begin(), nodes.end()}};
  if (rights.has_policy) {
    placement.kind = kGiven;
  } else if (nodes.size() <= 1) {
    placement.kind = kOneNode;
  } else if (!rights.may_choose) {
    placement.kind = kRefused;
  }
  return placement;
}

const MemoryPlacement& memory_placement() {
  static const MemoryPlacement placement =
      choose_memory_placement(describe_processors(allowed_processors()), memory_rights());
  return placement;
}

Status interleave_memory(std::span<std::byte> mapping, std::span<const int> nodes) {
  return set_policy(mapping, MPOL_INTERLEAVE, NodeMask(nodes));
}

Status place_memory(std::span<std::byte> mapping, int node) {
  return set_policy(mapping, MPOL_PREFERRED, NodeMask({&node, 1}));
}

}  // namespace ingot::base
