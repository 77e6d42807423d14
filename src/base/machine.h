#pragma once

#include <cstdint>
#include <string>

namespace ingot::base {

// Processor name as the kernel gives it ("AMD EPYC 9655 96-Core Processor").
std::string processor_name();

// Threads that this process may keep busy: the affinity mask, cut by the cgroup's CPU quota
// (rounded up). At least 1.
int usable_threads();

// Bytes of this process that are in memory now.
uint64_t resident_memory_bytes();

// Bytes that can still be allocated: MemAvailable, cut by what the cgroup's limit leaves.
uint64_t available_memory_bytes();

}  // namespace ingot::base
