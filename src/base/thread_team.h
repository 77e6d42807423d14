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

  // Keeps the calling thread on the processors of member 0, and puts it back where it was allowed
  // before at the end. For a thread that does little else than call run(), such as the engine's:
  // run() from any other thread does the same for its own duration. Whoever starts threads
  // should not hold one, since they would be confined with it.
  // The team must outlive it; a thread ends the seats that it took in reverse order.
  class Seat {
   public:
    explicit Seat(ThreadTeam& team);
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;

   private:
    ThreadTeam& team_;
    std::vector<int> allowed_before_;  // empty: not confined by this seat
    std::thread::id seated_before_;
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
  Duration spin_limit_{};
  std::vector<std::vector<int>> processors_;  // of each member; empty when they are not placed
  std::vector<int> nodes_;                    // of each member, likewise
  std::atomic<std::thread::id> seated_thread_{};
  std::vector<std::jthread> threads_;
};

}  // namespace ingot::base
