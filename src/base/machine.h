#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ingot::base {

// Processor name as the kernel gives it ("AMD EPYC 9655 96-Core Processor").
std::string processor_name();

// Threads that this process may keep busy: one for each physical core of the affinity mask, as two
// hardware threads of a core share its arithmetic; no more whole ones than the cgroup's CPU quota
// gives, as the system stops a process that uses it up for tens of milliseconds. At least 1.
int usable_threads();

// The same for a number of cores and a quota in processors.
int usable_threads(int num_cores, std::optional<double> quota_processors);

// Bytes of this process that are in memory now.
uint64_t resident_memory_bytes();

// Bytes that can still be allocated: MemAvailable, cut by what the cgroup's limit leaves.
uint64_t available_memory_bytes();

}  // namespace ingot::base
