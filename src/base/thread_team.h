#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"

namespace ingot::base {

// Half-open range of indices.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Member `member`'s contiguous share of `count` indices among `size` members, cut at multiples of
// `grain` so that neighbours never share a tile. Shares cover every index once; some may be empty.
IndexRange share_of(int64_t count, int member, int size, int64_t grain = 1);

// A fixed set of threads that enter one piece of work together, once a step, and meet inside it at
// barriers. The calling thread is member 0. Waiting spins briefly and then sleeps, so that an idle
// team costs no processor time.
//
// One thread at a time may call run(); barrier() is for members inside run().
class ThreadTeam {
 public:
  // Errors: the system refuses so many threads.
  // REQUIRES: size >= 1.
  static Result<std::unique_ptr<ThreadTeam>> create(int size);

  // As create(), where running out of threads is a bug.
  explicit ThreadTeam(int size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Calls work(member) on every member and returns when all have returned.
  // REQUIRES: work does not throw; every member passes the same number of barriers.
  template <typename Work>
  void run(const Work& work) {
    run_erased([](const void* target, int member) { (*static_cast<const Work*>(target))(member); },
               &work);
  }

  // Returns when every member has arrived; what each wrote before is visible to all after.
  void barrier();

 private:
  using Call = void (*)(const void* target, int member);

  struct NotStarted {};
  ThreadTeam(int size, NotStarted) : size_(size) {}
  Status start();
  void stop();
  void run_erased(Call call, const void* target) noexcept;
  void serve(int member) noexcept;

  const int size_;
  Call call_ = nullptr;
  const void* target_ = nullptr;
  std::atomic<uint32_t> epoch_{0};       // counts calls of run()
  std::atomic<uint32_t> generation_{0};  // counts completed barriers
  std::atomic<int> arrived_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> threads_;
};

}  // namespace ingot::base
