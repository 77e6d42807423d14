#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "engine/model_runner.h"
#include "engine/probe_round.h"
#include "engine/samples.h"
#include "kernels/target.h"
#include "model/step_cost.h"

namespace ingot::engine {

// Times steps of a model directly: no scheduler, no sampling, tokens drawn at random. Probes of the
// machine alternate with what is timed, so that a floor of the same minutes stands beside it.

struct StepBenchmarkOptions {
  std::vector<int64_t> prefill_tokens = {512};  // each from position 0, by itself
  std::vector<int64_t> depths = {0};            // positions in the cache when decoding begins
  std::vector<int64_t> batches = {1};           // sequences that are decoded together
  int64_t decode_tokens = 64;                   // of each sequence; 0: no decoding
  int32_t draft_tokens_max =
      0;  // also times drafting and verifying 1 to as many; needs the MTP layer
  int64_t max_step_tokens = 512;  // a longer prefill is several steps, as the engine does it
  int32_t repetitions = 5;
  uint64_t seed = 0;
  kernels::Target probe_target = kernels::Target::kReference;  // highest level of probes
  base::Duration probe_slice = std::chrono::milliseconds(50);
  int32_t probe_rounds_min = 20;
};

// Positions that one sequence reaches, and sequences, and rows of a step.
RunnerCapacity benchmark_capacity(const StepBenchmarkOptions& options);

enum class TestKind : uint8_t { kPrefill, kDecode };

// One row of the table.
struct TestResult {
  TestKind kind = TestKind::kPrefill;
  int64_t depth = 0;
  int64_t batch = 1;
  int64_t tokens = 0;    // of each sequence
  Samples seconds = {};  // of each repetition
  // What each step of a repetition costs. All repetitions compute the same.
  std::vector<model::StepCost> steps = {};
  double experts_read = 0;  // distinct ones a step, counted, summed over layers; 0: no such layers

  int64_t total_tokens() const { return tokens * batch; }
  model::StepCost cost() const;  // of a repetition
};

// Steps that draft `draft_tokens` after each sequence and verify them.
struct SpeculationResult {
  int64_t depth = 0;
  int64_t batch = 1;
  int32_t draft_tokens = 0;
  Samples plain = {};   // T(1): seconds of a step without drafts and without the MTP layer's rows
  Samples draft = {};   // D(K)
  Samples verify = {};  // V(K + 1), with the rows that the MTP layer writes for the tokens
  model::StepCost draft_cost = {};   // of one in the middle; experts are those to be expected
  model::StepCost verify_cost = {};  // the same
};

struct StepBenchmarkReport {
  std::vector<TestResult> tests;
  std::vector<SpeculationResult> speculation;
  std::vector<ProbeReading> probes;
  model::MachineRates rates;  // medians, of all threads
  // Processor time that the timed steps got, as a share of what their threads could have had. Well
  // below 1 on a machine that has other work; members that wait for another also sleep.
  double processor_share = 0;
};

// Runs all tests on `runner`, whose capacity is benchmark_capacity's, or larger.
// Errors: no memory for the probes' buffers. REQUIRES: draft_tokens_max is 0 or the model has its
// MTP layer; every list has positive numbers, depths may be 0.
base::Result<StepBenchmarkReport> run_step_benchmark(const LoadedModel& model, ModelRunner& runner,
                                                     const StepBenchmarkOptions& options,
                                                     const base::Clock& clock,
                                                     uint64_t available_bytes);

}  // namespace ingot::engine
