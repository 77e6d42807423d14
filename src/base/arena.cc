#include "base/arena.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/machine.h"
#include "base/numa.h"

namespace ingot::base {

namespace {

// Bytes of all arenas that exist.
std::atomic<uint64_t> live_bytes{0};

// What the kernel still counts as available although an arena was promised it: pages that nothing
// has touched yet. Memory of the process that is no arena's makes this too small, never too large.
uint64_t promised_bytes() {
  const uint64_t live = live_bytes.load();
  return live - std::min(live, resident_memory_bytes());
}

}  // namespace

Result<Arena> Arena::create(uint64_t capacity_bytes, std::string_view purpose) {
  if (capacity_bytes == 0) return Arena(nullptr, 0);
  const uint64_t free = available_memory_bytes();
  const uint64_t available = free - std::min(free, promised_bytes());
  if (capacity_bytes > available) {
    return error(
        "{} need {:.2f} GiB of memory and {:.2f} GiB are available; free memory, raise the "
        "cgroup's limit or ask for less",
        purpose, static_cast<double>(capacity_bytes) / 0x1p30,
        static_cast<double>(available) / 0x1p30);
  }
  void* address = ::mmap(nullptr, capacity_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return error("{}: cannot reserve {} bytes of memory: {}", purpose, capacity_bytes,
                 std::strerror(errno));
  }
  ::madvise(address, capacity_bytes, MADV_HUGEPAGE);
  // Which member multiplies which rows differs between operations and batches, so no node is the
  // right one for a page; spread out, no node's bandwidth is the limit of all.
  if (const MemoryPlacement& placement = memory_placement();
      placement.kind == MemoryPlacement::Kind::kInterleaved) {
    const Status spread =
        interleave_memory({static_cast<std::byte*>(address), capacity_bytes}, placement.nodes);
    if (!spread) log_warning(fmt::format("{}: {}", purpose, spread.error().message));
  }
  live_bytes += capacity_bytes;
  return Arena(static_cast<std::byte*>(address), capacity_bytes);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      capacity_bytes_(std::exchange(other.capacity_bytes_, 0)),
      used_bytes_(std::exchange(other.used_bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_bytes_, other.capacity_bytes_);
  std::swap(used_bytes_, other.used_bytes_);
  return *this;
}

Arena::~Arena() {
  if (data_ == nullptr) return;
  ::munmap(data_, capacity_bytes_);
  live_bytes -= capacity_bytes_;
}

std::byte* Arena::allocate(uint64_t size_bytes) {
  // Twice, since padding the largest sizes wraps around.
  const uint64_t left_bytes = capacity_bytes_ - used_bytes_;
  CHECK(size_bytes <= left_bytes && padded(size_bytes) <= left_bytes, "arena is too small");
  std::byte* piece = data_ + used_bytes_;
  used_bytes_ += padded(size_bytes);
  return piece;
}

}  // namespace ingot::base
