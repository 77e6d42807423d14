#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/processors.h"
#include "base/result.h"

namespace ingot::base {

// Where the pages of memory that all threads use, weights and caches, are put.
struct MemoryPlacement {
  enum class Kind {
    kOneNode,      // there is nothing to choose
    kInterleaved,  // page by page over all nodes that compute: each gives its share of bandwidth
    kGiven,        // as whoever started the process asked (numactl)
    kRefused,      // the system does not let a process choose: where they are first touched
  };
  Kind kind = Kind::kOneNode;
  std::vector<int> nodes = {0};  // that compute and may give memory, ascending

  // "memory spread over 2 nodes"; for people.
  std::string line() const;
};

// What the system says of this process's memory.
struct MemoryRights {
  std::optional<std::vector<int>> allowed_nodes = {};  // unknown: all
  bool has_policy = false;                             // one was set before we came
  bool may_choose = true;
};

// Spreads over the nodes of these processors from which memory may come. Nodes without processors
// are slower memory and get none.
MemoryPlacement choose_memory_placement(std::span<const Processor> processors,
                                        const MemoryRights& rights);

// For this process, decided at the first call: a thread with a seat in a team, which runs on few
// processors, puts its memory where the others do.
const MemoryPlacement& memory_placement();

// Puts the pages of this mapping on these nodes in turn, or all on one. Pages that were touched
// before stay where they are.
// REQUIRES: begins at a page. Errors: the system refuses, or has no such node.
Status interleave_memory(std::span<std::byte> mapping, std::span<const int> nodes);
Status place_memory(std::span<std::byte> mapping, int node);

}  // namespace ingot::base
