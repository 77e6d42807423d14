#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "simulation/dice.h"
#include "simulation/request_plan.h"
#include "simulation/setup.h"

namespace ingot::simulation {

// Requests in the order of their arrival, made one by one: shared prefixes, repeated prompts,
// conversations that go on, clients that leave, stop strings, deadlines and failing executors. The
// same for the same setup, whatever the scheduler does, and of bounded memory.
class Workload {
 public:
  Workload(const Setup& setup, int64_t num_requests);

  // Nothing: that was the last one.
  std::optional<RequestPlan> next();

 private:
  // What a later request may repeat or go on with.
  struct Earlier {
    std::vector<int32_t> prompt;
    std::string salt;
    int32_t max_tokens = 0;
  };

  std::vector<int32_t> draw_tokens(int32_t count);
  void draw_prompt(scheduler::Request& request);
  void continue_conversation(const Earlier& earlier, scheduler::Request& request);
  void draw_limits(RequestPlan& plan);
  void draw_mishaps(RequestPlan& plan);

  Setup setup_;
  int64_t num_left_;
  Dice dice_;
  std::vector<std::vector<int32_t>> shared_prefixes_;
  std::deque<Earlier> earlier_;
  base::Instant last_arrival_ = {};
  scheduler::RequestId last_id_ = 0;
};

}  // namespace ingot::simulation
