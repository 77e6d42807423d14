#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulation/request_plan.h"
#include "simulation/setup.h"
#include "simulation/simulation.h"

namespace ingot::simulation {

enum class Telling : uint8_t { kNothing, kHistory };

// How a trial came out.
struct TrialReport {
  std::optional<Outcome> outcome = {};  // absent: it failed
  std::string text = {};                // the history, if it was to be told, and what went wrong
  Standing standing = {};               // how far it came
};

// One simulation in a child process, so that a scheduler that stops the process, or never comes
// back, is a report like any other. One thread uses it.
class Trial {
 public:
  // Starts it. `limit_seconds`: longer than this no simulation takes unless it hangs.
  Trial(const Setup& setup, const Simulation::Plans& plans, Telling telling, int limit_seconds);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Waits for up to a tenth of a second; says whether the child is done.
  bool wait();
  Standing standing() const { return shared_->standing; }

  // REQUIRES: wait() said that the child is done.
  TrialReport report() const;

 private:
  // What the child writes and this process reads.
  struct Shared {
    Standing standing;
    Outcome outcome;
  };

  Shared* shared_ = nullptr;
  pid_t child_ = -1;
  int pipe_ = -1;  // of all that the child says
  int status_ = 0;
  std::string text_;
};

// A trial from beginning to end.
TrialReport run_trial(const Setup& setup, const Simulation::Plans& plans,
                      Telling telling = Telling::kNothing);

// The plans of a list, one by one. The list must outlive it.
Simulation::Plans plans_of(const std::vector<RequestPlan>& list);

}  // namespace ingot::simulation
