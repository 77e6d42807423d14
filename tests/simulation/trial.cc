#include "simulation/trial.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "base/check.h"

namespace ingot::simulation {
namespace {

constexpr int kLimitSeconds = 60;

void say(int file, std::string_view line) {
  std::string text(line);
  text += '\n';
  for (std::string_view left = text; !left.empty();) {
    const ssize_t count = ::write(file, left.data(), left.size());
    if (count <= 0) ::_exit(3);  // nobody listens any more
    left.remove_prefix(static_cast<size_t>(count));
  }
}

}  // namespace

Trial::Trial(const Setup& setup, const Simulation::Plans& plans, Telling telling,
             int limit_seconds) {
  static_assert(std::is_trivially_copyable_v<Outcome>, "it is shared with another process");
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED, "no memory to share with a trial");
  shared_ = new (memory) Shared();
  std::array<int, 2> ends = {};
  CHECK(::pipe(ends.data()) == 0, "no pipe for a trial");
  child_ = ::fork();
  CHECK(child_ >= 0, "no process for a trial");
  if (child_ > 0) {
    ::close(ends[1]);
    pipe_ = ends[0];
    return;
  }

  // The child. What a CHECK says goes to stderr.
  ::close(ends[0]);
  ::dup2(ends[1], STDERR_FILENO);
  ::alarm(static_cast<unsigned>(limit_seconds));
  std::function<void(std::string_view)> reader;
  if (telling == Telling::kHistory)
    reader = [](std::string_view line) { say(STDERR_FILENO, line); };
  Journal journal(reader);
  Simulation simulation(setup, plans, journal, shared_->standing);
  const base::Result<Outcome> outcome = simulation.run();
  if (outcome) {
    shared_->outcome = *outcome;
  } else {
    say(STDERR_FILENO, outcome.error().message);
  }
  ::_exit(outcome ? 0 : 1);
}

Trial::~Trial() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  if (pipe_ >= 0) ::close(pipe_);
  ::munmap(shared_, sizeof(Shared));
}

bool Trial::wait() {
  pollfd waiting = {.fd = pipe_, .events = POLLIN};
  if (::poll(&waiting, 1, 100) <= 0) return false;
  std::array<char, 65536> buffer = {};
  const ssize_t count = ::read(pipe_, buffer.data(), buffer.size());
  if (count > 0) {
    text_.append(buffer.data(), static_cast<size_t>(count));
    return false;
  }
  CHECK(::waitpid(child_, &status_, 0) == child_);
  child_ = -1;
  return true;
}

TrialReport Trial::report() const {
  CHECK(child_ == -1, "the trial is still under way");
  TrialReport report = {.text = text_, .standing = shared_->standing};
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == 0) {
    report.outcome = shared_->outcome;
  } else if (WIFSIGNALED(status_) && WTERMSIG(status_) == SIGALRM) {
    report.text += "it did not come back\n";
  } else if (WIFSIGNALED(status_)) {
    report.text += fmt::format("it was stopped in step {}: {}\n", report.standing.num_steps + 1,
                               ::strsignal(WTERMSIG(status_)));
  }
  return report;
}

TrialReport run_trial(const Setup& setup, const Simulation::Plans& plans, Telling telling) {
  Trial trial(setup, plans, telling, kLimitSeconds);
  while (!trial.wait()) continue;
  return trial.report();
}

Simulation::Plans plans_of(const std::vector<RequestPlan>& list) {
  return [&list, next = size_t{0}]() mutable -> std::optional<RequestPlan> {
    if (next == list.size()) return std::nullopt;
    return list[next++];
  };
}

}  // namespace ingot::simulation
