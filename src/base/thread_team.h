#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/index_range.h"
#include "base/result.h"

namespace ingot::base {

// A fixed set of threads that enter one piece of work together, once a step, and meet inside it at
// barriers. The calling thread is member 0.
//
// Each member has processors of its own, so that none waits for a processor on which another one
// waits for it; see share_processors(). A team with more members than processors is left to the
// system. Waiting spins for a bounded time and then sleeps: an idle team costs no processor time,
// and a barrier at which nobody fell asleep no system call.
//
// One thread at a time may call run(); barrier() is for members inside run().
class ThreadTeam {
 public:
  // Which threads run where.
  enum class Placement {
    kOwnProcessors,  // members never share a processor
    kCrowded,        // more members than processors
    kRefused,        // the system does not let a process choose
  };

  // Keeps the calling thread on the processors of member 0, and lets it go where it was allowed
  // before at the end. For whoever takes many steps, such as the engine's thread: without a seat
  // the system may put member 0 on a processor of another member, and then they take turns. run()
  // does not do this by itself, as moving costs up to a time slice on a busy machine. Threads that
  // the holder starts are confined with it, so a thread that starts others ends its seat first. The
  // team must outlive the seat.
  class Seat {
   public:
    explicit Seat(ThreadTeam& team);
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

   private:
    ThreadTeam& team_;
    std::vector<int> allowed_before_;  // empty: not confined
  };

  // Errors: the system refuses so many threads.
  // REQUIRES: size >= 1.
  static Result<std::unique_ptr<ThreadTeam>> create(int size);

  // As create(), where running out of threads is a bug.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }
  Placement placement() const { return placement_; }

  // The memory node that is nearest to a member; 0 when members are not placed.
  int node_of(int member) const;

  // "8 threads, each on a processor of its own"; for people.
  std::string placement_line() const;

  // Calls work(member) on every member and returns when all have returned.
  // REQUIRES: work does not throw; every member passes the same number of barriers.
  template <typename Work>
  void run(const Work& work) {
    run_erased([](const void* target, int member) { (*static_cast<const Work*>(target))(member); },
               &work);
  }

  // Returns when every member has arrived; what each wrote before is visible to all after.
  // REQUIRES: each member gives its own number.
  void barrier(int member);

 private:
  using Call = void (*)(const void* target, int member);

  // Two lines: processors fetch them in pairs.
  static constexpr size_t kApartBytes = 128;

  // A count that others wait for. Whoever moves it on asks the system to wake them only when
  // somebody sleeps.
  struct alignas(kApartBytes) Signal {
    std::atomic<uint32_t> count{0};
    std::atomic<int> sleepers{0};
  };

  // Where some members meet on their way into a barrier, or some of such groups.
  struct alignas(kApartBytes) Arrivals {
    std::atomic<int> arrived{0};
    int expected = 0;

    // True for the last one, who leaves it ready for the next barrier.
    bool arrives_last();
  };

  struct NotStarted {};
  ThreadTeam(int size, NotStarted);
  Status start();
  void choose_placement();
  void stop();
  void run_erased(Call call, const void* target) noexcept;
  void serve(int member) noexcept;
  static void advance(Signal& signal);
  void wait_for_change(Signal& signal, uint32_t old) const;
  Duration spin_limit() const;

  const int size_;
  const int group_members_;
  std::vector<Arrivals> groups_;  // one member after the other, group_members_ in each
  Arrivals root_;                 // the groups' own meeting place, where there are several
  Signal completed_;              // barriers
  Signal started_;                // calls of run()
  Call call_ = nullptr;
  const void* target_ = nullptr;
  std::atomic<bool> stopping_{false};

  // Chosen before any thread is started.
  Placement placement_ = Placement::kOwnProcessors;
  std::vector<std::vector<int>> processors_;  // of each member; empty when they are not placed
  std::vector<int> nodes_;                    // of each member, likewise
  std::atomic<int> num_seats_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace ingot::base
