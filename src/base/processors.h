#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include <pthread.h>

namespace ingot::base {

// What runs one thread at a time: a hardware thread of a core.
struct Processor {
  int number = 0;  // as the system counts them
  int core = 0;    // the same for hardware threads that share a core; unique in the machine
  int node = 0;    // the memory node that is nearest to it
  bool operator==(const Processor&) const = default;
};

// The numbers in a list as the kernel writes it, "0-3,8": ascending; empty when it is none.
std::vector<int> parse_number_list(std::string_view text);

// The processors on which the calling thread may run, ascending.
std::vector<int> allowed_processors();

// What `system` (/sys/devices/system, or files that stand for it in a test) says of processors. One
// of which it says nothing is a core of its own on node 0.
std::vector<Processor> describe_processors(
    std::span<const int> numbers, const std::filesystem::path& system = "/sys/devices/system");

int count_cores(std::span<const Processor> processors);

// Processors for each of `size` threads that work together, so that no two of them ever wait for
// the same one. Neighbours are near each other, and a share lies within one memory node.
// With as many cores as threads or more, a share is one or more whole cores: whoever else computes
// on this machine, the system can still move the thread within its share. With fewer cores each
// gets one processor, a second one of a core only when all cores have given one. Empty when there
// are fewer processors than threads.
std::vector<std::vector<int>> share_processors(std::vector<Processor> processors, int size);

// Lets the thread run on these processors only. False when the system refuses.
// REQUIRES: not empty.
bool confine_thread(pthread_t thread, std::span<const int> processors);

}  // namespace ingot::base
