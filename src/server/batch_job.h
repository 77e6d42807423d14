#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/model_text.h"
#include "server/batch_input.h"
#include "server/batch_output.h"
#include "server/prepared_request.h"

namespace ingot::server {

// Who answers a batch. All must outlive the job.
struct BatchService {
  engine::Engine& engine;
  const engine::ModelText* text = nullptr;  // null: prompts of token ids only
  ModelFacts facts = {};                    // its seed is that of the job
  // Names that requests may ask for; one without a name is answered too. Answers bear the first.
  std::vector<std::string> model_names = {};
  std::vector<double> simulated_acceptance = {};  // not empty: answers are marked with it
  int32_t max_running = 1;                        // sequences that the engine runs at once
  int64_t created = 0;                            // Unix time of the job's beginning
  std::tm local_time = {};                        // the same, for templates that print the date
};

// How far a job is. Lines of earlier runs are part of num_done and num_failed, not of the tokens.
struct BatchTally {
  int64_t num_lines = 0;
  int64_t num_done = 0;
  int64_t num_failed = 0;  // of them, without an answer
  int64_t num_found = 0;   // of them, by an earlier run
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_output_tokens = 0;
  bool was_stopped = false;  // wants_more said no before the end
};

// What may happen on the way, on the calling thread. Either may be empty.
struct BatchHooks {
  std::function<void(const BatchTally&)> on_progress;
  std::function<bool()> wants_more;  // asked at least every 50 ms
};

// Answers the lines of `input` that `output` lacks, as many at once as the engine can run, and
// writes them in order. A line that is no request, or whose request is refused or fails, has an
// error as its answer, and the rest goes on. A request without a seed has one of its own, made of
// the job's and its custom_id, so that answers do not depend on which run gave them.
// Errors: the output cannot be written.
base::Result<BatchTally> run_batch_job(const BatchService& service, const BatchInput& input,
                                       BatchOutput& output, const base::Clock& clock,
                                       const BatchHooks& hooks);

}  // namespace ingot::server
