#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/model_runner.h"

namespace ingot::engine {

// How much is to be served at once.
struct ServingLimits {
  int32_t max_running = 1;                  // sequences
  int32_t max_step_tokens = 512;            // rows of a step; more where max_running needs it
  int32_t max_draft_tokens = 0;             // of one sequence in one step
  std::optional<int64_t> kv_tokens = {};    // of all sequences together; absent: see plan_memory
  std::optional<int64_t> max_context = {};  // of one sequence; absent: the model's positions
};

// Where the memory of an engine goes.
struct MemoryPlan {
  RunnerCapacity capacity = {};
  uint64_t weight_bytes = 0;
  uint64_t workspace_bytes = 0;
  uint64_t cache_bytes = 0;
  uint64_t available_bytes = 0;  // beside the weights, when it was made
  int64_t kv_tokens = 0;
  // What bounds kv_tokens.
  enum class Bound : uint8_t { kAsked, kMemory, kSequences } bound = Bound::kAsked;

  // "17.2 GB of weights, 340 MB of workspace, 1.20 GB of cache for 32,768 tokens (80% of ...)"
  std::string line() const;
};

// The share of what workspace and weights leave that the cache takes when nobody says how many
// tokens it should hold. Never more than max_running sequences of the longest context can fill.
inline constexpr double kCacheShare = 0.8;

// REQUIRES: what is available was read after the model was loaded. Errors: kv_tokens or the least
// that can work is more than there is memory for, with both figures.
base::Result<MemoryPlan> plan_memory(const LoadedModel& model, int team_size,
                                     const ServingLimits& limits, uint64_t available_bytes);

}  // namespace ingot::engine
