#include "base/thread_team.h"

#include <algorithm>
#include <climits>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/processors.h"

namespace ingot::base {
namespace {

// Up to here all members meet at one count. Beyond, it would travel from core to core once for
// each, so neighbours meet in groups and then the last one of each.
constexpr int kMembersAtOneCount = 16;
constexpr int kGroupMembers = 8;

// Waiting costs at most twice what sleeping at once would have cost when it spins for as long as a
// sleep and its end take: tens of microseconds, and more where a hypervisor halts an idle
// processor. A step's operations take less, so a step with equal shares never sleeps.
constexpr Duration kSpinApart = std::chrono::microseconds(100);
// Two members may lie in wait for each other on one processor, and then spinning delays what it
// waits for: always where there are too few, and else when nobody keeps them apart.
constexpr Duration kSpinTogether = std::chrono::microseconds(20);
constexpr Duration kSpinCrowded = Duration::zero();

// Looks at the value between two looks at the clock, which costs as much as some of them.
constexpr int kLooksPerTurn = 32;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Not std::atomic::wait, which yields before it sleeps: on a busy machine that gives away a whole
// time slice, and nobody wakes who yielded.
void sleep_while_equal(std::atomic<uint32_t>& value, uint32_t old) {
  static_assert(sizeof value == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  ::syscall(SYS_futex, &value, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& value) {
  ::syscall(SYS_futex, &value, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

ThreadTeam::Seat::Seat(ThreadTeam& team) : team_(team) {
  if (team.processors_.empty()) return;
  std::vector<int> allowed = allowed_processors();
  if (!confine_thread(::pthread_self(), team.processors_.front())) return;
  allowed_before_ = std::move(allowed);
  team_.num_seats_.fetch_add(1, std::memory_order_relaxed);
}

ThreadTeam::Seat::~Seat() {
  if (allowed_before_.empty()) return;
  team_.num_seats_.fetch_sub(1, std::memory_order_relaxed);
  // Refused only when the system has taken all of those away, and then it has given others.
  confine_thread(::pthread_self(), allowed_before_);
}

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::create(int size) {
  std::unique_ptr<ThreadTeam> team(new ThreadTeam(size, NotStarted{}));
  TRY(team->start());
  return team;
}

ThreadTeam::ThreadTeam(int size, NotStarted)
    : size_(size),
      group_members_(size <= kMembersAtOneCount ? size : kGroupMembers),
      groups_(static_cast<size_t>((size + group_members_ - 1) / group_members_)) {
  CHECK(size >= 1);
  root_.expected = static_cast<int>(groups_.size());
  int left = size;
  for (Arrivals& group : groups_) {
    group.expected = std::min(left, group_members_);
    left -= group.expected;
  }
}

ThreadTeam::ThreadTeam(int size) : ThreadTeam(size, NotStarted{}) {
  const Status started = start();
  CHECK(started.has_value(), started ? "" : started.error().message);
}

Status ThreadTeam::start() {
  choose_placement();
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

void ThreadTeam::choose_placement() {
  if (size_ == 1) return;
  const std::vector<int> allowed = allowed_processors();
  processors_ = share_processors(describe_processors(allowed), size_);
  if (processors_.empty()) {
    placement_ = Placement::kCrowded;
  } else if (!confine_thread(::pthread_self(), allowed)) {  // changes nothing: only asks
    placement_ = Placement::kRefused;
    processors_.clear();
  } else {
    for (const std::vector<int>& own : processors_) {
      nodes_.push_back(describe_processors(own).front().node);
    }
  }
}

int ThreadTeam::node_of(int member) const {
  CHECK(0 <= member && member < size_);
  return nodes_.empty() ? 0 : nodes_[static_cast<size_t>(member)];
}

std::string ThreadTeam::placement_line() const {
  if (size_ == 1) return "1 thread";
  switch (placement_) {
    case Placement::kOwnProcessors: {
      const auto shared = [](const std::vector<int>& own) { return own.size() > 1; };
      return fmt::format("{} threads, each on {} of its own", size_,
                         std::ranges::any_of(processors_, shared) ? "processors" : "a processor");
    }
    case Placement::kCrowded:
      return fmt::format("{} threads on {} processors, where they wait for each other", size_,
                         allowed_processors().size());
    case Placement::kRefused:
      return fmt::format("{} threads, placed by the system: it does not let a process choose",
                         size_);
  }
  return {};
}

// Joins what runs, also when not every thread could be started.
void ThreadTeam::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  advance(started_);
  threads_.clear();
}

ThreadTeam::~ThreadTeam() { stop(); }

void ThreadTeam::run_erased(Call call, const void* target) noexcept {
  call_ = call;
  target_ = target;
  advance(started_);
  call(target, 0);
  barrier(0);
}

void ThreadTeam::serve(int member) noexcept {
  if (!processors_.empty()) {
    // May fail only when the system takes the processors away just now; then any will do.
    confine_thread(::pthread_self(), processors_[static_cast<size_t>(member)]);
  }
  uint32_t seen = 0;
  while (true) {
    wait_for_change(started_, seen);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) return;
    call_(target_, member);
    barrier(member);
  }
}

bool ThreadTeam::Arrivals::arrives_last() {
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < expected) return false;
  arrived.store(0, std::memory_order_relaxed);  // seen by all before they can come back here
  return true;
}

void ThreadTeam::barrier(int member) {
  if (size_ == 1) return;
  const uint32_t completed = completed_.count.load(std::memory_order_relaxed);
  Arrivals& group = groups_[static_cast<size_t>(member / group_members_)];
  if (group.arrives_last() && (groups_.size() == 1 || root_.arrives_last())) {
    advance(completed_);
  } else {
    wait_for_change(completed_, completed);
  }
}

// Sequentially consistent here and in wait_for_change(): either this sees the sleeper, or the
// sleeper the new count.
void ThreadTeam::advance(Signal& signal) {
  signal.count.fetch_add(1, std::memory_order_seq_cst);
  if (signal.sleepers.load(std::memory_order_seq_cst) > 0) wake_all(signal.count);
}

Duration ThreadTeam::spin_limit() const {
  if (placement_ == Placement::kCrowded) return kSpinCrowded;
  return num_seats_.load(std::memory_order_relaxed) > 0 ? kSpinApart : kSpinTogether;
}

// Returns once the count is no longer `old`.
void ThreadTeam::wait_for_change(Signal& signal, uint32_t old) const {
  const SystemClock clock;
  std::optional<Instant> end;
  while (true) {
    for (int look = 0; look < kLooksPerTurn; ++look) {
      if (signal.count.load(std::memory_order_acquire) != old) return;
      pause();
    }
    const Instant now = clock.now();
    if (!end) end = now + spin_limit();
    if (now >= *end) break;
  }
  signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (signal.count.load(std::memory_order_seq_cst) == old) sleep_while_equal(signal.count, old);
  signal.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace ingot::base
