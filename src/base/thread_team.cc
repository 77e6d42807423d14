#include "base/thread_team.h"

#include <algorithm>
#include <system_error>

#include "base/check.h"

namespace ingot::base {
namespace {

// About ten microseconds: longer than a barrier between operations takes, shorter than a sleep.
constexpr int kSpins = 4000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns once `value` is no longer `old`.
void wait_for_change(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

IndexRange share_of(int64_t count, int member, int size, int64_t grain) {
  const int64_t tiles = (count + grain - 1) / grain;
  const int64_t base = tiles / size;
  const int64_t extra = tiles % size;
  const int64_t first = member * base + std::min<int64_t>(member, extra);
  const int64_t last = first + base + (member < extra ? 1 : 0);
  return {std::min(first * grain, count), std::min(last * grain, count)};
}

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::create(int size) {
  std::unique_ptr<ThreadTeam> team(new ThreadTeam(size, NotStarted{}));
  TRY(team->start());
  return team;
}

ThreadTeam::ThreadTeam(int size) : size_(size) {
  const Status started = start();
  CHECK(started.has_value(), started ? "" : started.error().message);
}

Status ThreadTeam::start() {
  CHECK(size_ >= 1);
  threads_.reserve(static_cast<size_t>(size_ - 1));
  try {
    for (int member = 1; member < size_; ++member) {
      threads_.emplace_back([this, member] { serve(member); });
    }
  } catch (const std::system_error& failure) {
    const size_t started = threads_.size() + 1;
    stop();
    return error("cannot start {} threads, only {}: {}; ask for fewer with --threads", size_,
                 started, failure.what());
  }
  return {};
}

// Joins what runs, also when not every thread could be started.
void ThreadTeam::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  threads_.clear();
}

ThreadTeam::~ThreadTeam() { stop(); }

void ThreadTeam::run_erased(Call call, const void* target) noexcept {
  call_ = call;
  target_ = target;
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  call(target, 0);
  barrier();
}

void ThreadTeam::serve(int member) noexcept {
  uint32_t seen = 0;
  while (true) {
    wait_for_change(epoch_, seen);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) return;
    call_(target_, member);
    barrier();
  }
}

void ThreadTeam::barrier() {
  if (size_ == 1) return;
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) == size_ - 1) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  wait_for_change(generation_, generation);
}

}  // namespace ingot::base
