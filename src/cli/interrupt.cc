#include "cli/interrupt.h"

#include <csignal>

namespace ingot::cli {
namespace {

volatile std::sig_atomic_t interrupt_pressed = 0;
struct sigaction previous_action = {};

void remember(int) { interrupt_pressed = 1; }

}  // namespace

InterruptGuard::InterruptGuard() {
  clear();
  struct sigaction action = {};
  action.sa_handler = remember;  // without SA_RESTART: a blocking read ends
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &previous_action);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &previous_action, nullptr); }

bool InterruptGuard::pressed() { return interrupt_pressed != 0; }
void InterruptGuard::clear() { interrupt_pressed = 0; }

}  // namespace ingot::cli
