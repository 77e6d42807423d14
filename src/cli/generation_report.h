#pragma once

#include <string>

#include "base/json.h"
#include "engine/engine_request.h"

namespace ingot::cli {

// Tokens a second after the first one.
double decode_rate(const engine::EngineReport& report);

// "usage" and "timings" of a request, as every command that generates prints them.
base::json::object usage_json(const engine::EngineReport& report);
base::json::object timings_json(const engine::EngineReport& report);

// "12 prompt tokens (8 cached) in 0.42 s, then 30 tokens at 11.2 tokens/s (27 of 33 drafts
// accepted); finished: stop"
std::string generation_summary(const engine::EngineReport& report);

}  // namespace ingot::cli
