#include "cli/interrupt.h"

#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"

namespace ingot::cli {
namespace {

volatile std::sig_atomic_t interrupt_pressed = 0;
// The handler runs on any thread and at any moment, also just before somebody blocks: a byte in
// this pipe is not missed.
int pipe_ends[2] = {-1, -1};
struct sigaction previous_action = {};

void remember(int) {
  const int error = errno;
  interrupt_pressed = 1;
  [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], "", 1);  // full is as good
  errno = error;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  CHECK(::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0, "no pipe");
  interrupt_pressed = 0;
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;  // an answer that is being written is not torn
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_action, nullptr);
  for (int& end : pipe_ends) {
    ::close(end);
    end = -1;
  }
}

bool InterruptGuard::pressed() { return interrupt_pressed != 0; }

void InterruptGuard::clear() {
  char bytes[64];
  while (pipe_ends[0] >= 0 && ::read(pipe_ends[0], bytes, sizeof bytes) > 0) {
  }
  interrupt_pressed = 0;
}

int InterruptGuard::descriptor() { return pipe_ends[0]; }

}  // namespace ingot::cli
