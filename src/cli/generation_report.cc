#include "cli/generation_report.h"

#include <fmt/format.h>

namespace ingot::cli {
namespace {

namespace json = base::json;

double rate(size_t tokens, base::Duration duration) {
  const double seconds = base::seconds(duration);
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

}  // namespace

double decode_rate(const engine::Generation& generation) {
  const size_t count = generation.token_ids.size();
  return rate(count == 0 ? 0 : count - 1, generation.decode);
}

json::object usage_json(const engine::Generation& generation, size_t prompt_tokens) {
  const size_t completion_tokens = generation.token_ids.size();
  return {{"prompt_tokens", prompt_tokens},
          {"cached_tokens", generation.num_cached_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", prompt_tokens + completion_tokens},
          {"draft_tokens", 0},
          {"accepted_tokens", 0}};
}

json::object timings_json(const engine::Generation& generation, size_t prompt_tokens) {
  const size_t computed = prompt_tokens - generation.num_cached_tokens;
  return {{"prefill_seconds", base::seconds(generation.prefill)},
          {"decode_seconds", base::seconds(generation.decode)},
          {"prefill_tokens_per_second", rate(computed, generation.prefill)},
          {"decode_tokens_per_second", decode_rate(generation)}};
}

std::string generation_summary(const engine::Generation& generation, size_t prompt_tokens) {
  if (generation.token_ids.empty() &&
      generation.finish_reason == engine::FinishReason::kCancelled) {
    return fmt::format("stopped within the {} prompt tokens", prompt_tokens);
  }
  const size_t cached = generation.num_cached_tokens;
  return fmt::format(
      "{} prompt tokens{} in {:.2f} s, then {} tokens at {:.1f} tokens/s; finished: {}",
      prompt_tokens, cached == 0 ? "" : fmt::format(" ({} cached)", cached),
      base::seconds(generation.prefill), generation.token_ids.size(), decode_rate(generation),
      name(generation.finish_reason));
}

}  // namespace ingot::cli
