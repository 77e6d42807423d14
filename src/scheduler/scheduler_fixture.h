#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "scheduler/scheduler.h"

namespace ingot::scheduler {

inline base::Instant at(int64_t milliseconds) {
  return base::Instant(std::chrono::milliseconds(milliseconds));
}

// `count` tokens that no other `first` shares.
inline std::vector<int32_t> tokens_from(int32_t first, int32_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first * 100'000);
  return tokens;
}

inline SchedulerConfig roomy_config() {
  return {.num_pages = 1000, .num_slots = 8, .max_context = 10'000, .max_step_tokens = 64};
}

// Steps a scheduler by hand, a millisecond a step. What is drawn is the output position; of drafts
// the first `accepted` are right.
struct SchedulerDriver {
  explicit SchedulerDriver(const SchedulerConfig& config) : scheduler(*Scheduler::create(config)) {}

  void add(Request request) {
    prompt_lengths[request.id] = static_cast<int32_t>(request.prompt.size());
    ASSERT_TRUE(scheduler.add(std::move(request), at(now)));
  }

  const Batch& schedule() {
    const Batch& batch = scheduler.schedule(at(now));
    scheduler.check_invariants();
    return batch;
  }

  void commit(const Batch& batch) {
    StepResult result;
    for (const Batch::Sequence& entry : batch.sequences) {
      StepResult::Sequence& drawn = result.sequences.emplace_back();
      if (failing.contains(entry.request)) drawn.error = failing[entry.request];
      if (!entry.draws) continue;
      const int32_t position = entry.first_position + static_cast<int32_t>(entry.tokens.size()) -
                               prompt_lengths[entry.request];
      const int32_t count = 1 + std::min(accepted, entry.num_draft_tokens);
      for (int32_t i = 0; i < count; ++i) drawn.tokens.push_back(position + i);
    }
    scheduler.commit(result, at(++now));
    scheduler.check_invariants();
    take_events();
  }

  void take_events() {
    for (RequestEvent& event : scheduler.take_events()) {
      std::vector<int32_t>& output = outputs[event.request];
      EXPECT_FALSE(reports.contains(event.request)) << "news after the end";
      output.insert(output.end(), event.tokens.begin(), event.tokens.end());
      if (event.report) reports[event.request] = *event.report;
    }
  }

  // False when there was nothing to do.
  bool step() {
    const Batch& batch = schedule();
    if (batch.sequences.empty()) return false;
    commit(batch);
    return true;
  }

  void run() {
    for (int i = 0; i < 10'000; ++i) {
      if (!step()) return take_events();
    }
    FAIL() << "it does not end";
  }

  // The entry of a request in a batch.
  static const Batch::Sequence& entry(const Batch& batch, RequestId id) {
    for (const Batch::Sequence& entry : batch.sequences) {
      if (entry.request == id) return entry;
    }
    CHECK(false, "the request is not in the batch");
  }
  static bool has(const Batch& batch, RequestId id) {
    return std::ranges::any_of(batch.sequences, [&](const auto& e) { return e.request == id; });
  }

  Scheduler scheduler;
  int64_t now = 0;
  int32_t accepted = 0;
  std::map<RequestId, std::string> failing;
  std::map<RequestId, int32_t> prompt_lengths;
  std::map<RequestId, std::vector<int32_t>> outputs;
  std::map<RequestId, RequestReport> reports;
};

}  // namespace ingot::scheduler
