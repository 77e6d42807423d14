#include "endtoend/terminal.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/check.h"
#include "endtoend/program.h"

namespace ingot::endtoend {
namespace {

constexpr int kPatienceMs = 60'000;

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

}  // namespace

bool Terminal::available() {
  const int descriptor = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}

Terminal::Terminal(const std::vector<std::string>& arguments) {
  child_ = ::forkpty(&descriptor_, nullptr, nullptr, nullptr);
  CHECK(child_ >= 0, "no terminal");
  if (child_ == 0) {
    ::setenv("TERM", "xterm", 1);
    execute_ingot(arguments);
  }
}

Terminal::~Terminal() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  ::close(descriptor_);
}

void Terminal::type(std::string_view keys) {
  while (!keys.empty()) {
    const ssize_t written = ::write(descriptor_, keys.data(), keys.size());
    CHECK(written > 0, "the terminal takes nothing");
    keys.remove_prefix(static_cast<size_t>(written));
  }
}

bool Terminal::read_some() {
  pollfd poll{.fd = descriptor_, .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, kPatienceMs) <= 0) return false;
  char buffer[4096];
  const ssize_t count = ::read(descriptor_, buffer, sizeof buffer);
  if (count <= 0) return false;  // EIO: the program closed its side
  shown_.append(buffer, static_cast<size_t>(count));
  return true;
}

bool Terminal::wait_for(std::string_view text, size_t count) {
  while (count_of(shown_, text) < count) {
    if (!read_some()) return false;
  }
  return true;
}

bool Terminal::wait_for_prompt(std::string_view text) {
  while (!shown_.ends_with(text)) {
    if (!read_some()) return false;
  }
  // The editor shows its prompt and then switches the terminal to single keys.
  termios settings{};
  do {
    ::usleep(1000);
    if (::tcgetattr(descriptor_, &settings) != 0) return false;
  } while ((settings.c_lflag & ICANON) != 0);
  return true;
}

int Terminal::wait_for_end() {
  while (read_some()) {
  }
  int status = 0;
  CHECK(::waitpid(child_, &status, 0) == child_);
  child_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace ingot::endtoend
