#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/sampling_params.h"
#include "engine/token_grammar.h"
#include "engine/token_logprobs.h"
#include "scheduler/request.h"

namespace ingot::engine {

// Tokens to be continued, and how: one sequence. Plain data; whoever answers several choices to a
// prompt submits it several times with other seeds.
struct EngineRequest {
  std::vector<int32_t> prompt = {};  // at least one token
  // 0: the prompt is computed and nothing drawn. Absent: as many as there is room for.
  std::optional<int32_t> max_tokens = {};
  int32_t min_tokens = 0;  // before as many, nothing but max_tokens ends it, and no end is drawn
  SamplingParams sampling = {};
  // What ends it beside max_tokens. Ids that end it are not part of the output. A stop string is
  // searched for in the text of the output, markers included; what is drawn after it was complete
  // is neither told nor counted. None of them may be empty.
  bool ignore_eos = false;  // the model's own end-of-sequence ids are ids like any other
  std::vector<int32_t> stop_token_ids = {};
  std::vector<std::string> stop_strings = {};
  std::optional<TokenGrammar> grammar = {};  // REQUIRES: both functions
  bool wants_prompt_logprobs = false;  // reads no cached prefix; sampling.num_top_logprobs of each
  int32_t priority = 0;                // higher goes first
  std::optional<base::Instant> deadline = {};
  std::string cache_salt = {};  // shares cached prefixes with requests of the same salt alone
  int32_t max_draft_tokens = INT32_MAX;  // at most as many drafts a step as this
};

// How a request ended. `stopped_by_id` or `stopped_by_string` says at what, where it stopped.
struct EngineReport {
  scheduler::FinishReason reason = scheduler::FinishReason::kStop;
  std::string error = {};  // of kError
  std::optional<int32_t> stopped_by_id = {};
  std::optional<size_t> stopped_by_string = {};  // index into stop_strings
  scheduler::Usage usage = {};
  scheduler::Timings timings = {};
};

// News of one request. They come in order, and the one with a report is the last.
struct EngineUpdate {
  std::vector<int32_t> tokens = {};                 // that continue its output
  std::vector<TokenLogprobs> logprobs = {};         // of these tokens, where wanted
  std::vector<TokenLogprobs> prompt_logprobs = {};  // that follow those told; from the second token
  int32_t num_prompt_tokens_done = 0;               // that are in the cache by now
  std::optional<EngineReport> report = {};
};

// Takes a request's news, on the engine's thread: it has to be quick, must not block or throw, and
// may call the engine's cancel().
using UpdateSink = std::function<void(EngineUpdate&&)>;

}  // namespace ingot::engine
