#pragma once

#include <cstddef>

#include "base/json.h"
#include "engine/generation.h"

namespace ingot::cli {

// Tokens a second after the first one.
double decode_rate(const engine::Generation& generation);

// "usage" and "timings" of a generation, as every command that generates prints them.
base::json::object usage_json(const engine::Generation& generation, size_t prompt_tokens);
base::json::object timings_json(const engine::Generation& generation, size_t prompt_tokens);

// "12 prompt tokens (8 cached) in 0.42 s, then 30 tokens at 11.2 tokens/s; finished: stop"
std::string generation_summary(const engine::Generation& generation, size_t prompt_tokens);

}  // namespace ingot::cli
