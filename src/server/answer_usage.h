#pragma once

#include <cstdint>
#include <span>

#include "base/json.h"
#include "engine/engine_request.h"

namespace ingot::server {

// "usage" of a request whose choices ended so, all of one prompt after those of another. A prompt
// counts once, however many choices continue it, and as cached only what every choice of it found
// in the cache: the one that came first computed it for the others.
// REQUIRES: choices_per_prompt divides reports.size().
base::json::object usage_json(std::span<const engine::EngineReport> reports,
                              int32_t num_choices_per_prompt, int64_t num_reasoning_tokens);

// "timings" in seconds, of all choices together: from the first that did something to the last that
// ended. What it did not come to is left out.
base::json::object timings_json(std::span<const engine::EngineReport> reports);

}  // namespace ingot::server
