#include "cli/generation_report.h"

#include <algorithm>

#include <fmt/format.h>

namespace ingot::cli {
namespace {

namespace json = base::json;

double rate(int64_t tokens, base::Duration duration) {
  const double seconds = base::seconds(duration);
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

// How long it waited, computed its prompt, and drew after its first token.
struct Phases {
  base::Duration queue{};
  base::Duration prefill{};
  base::Duration decode{};
};

Phases phases(const scheduler::Timings& timings) {
  const base::Instant admitted = timings.admitted.value_or(timings.finished);
  const base::Instant first_token = timings.first_token.value_or(timings.finished);
  return {.queue = admitted - timings.arrived,
          .prefill = first_token - admitted,
          .decode = timings.finished - first_token};
}

}  // namespace

double decode_rate(const engine::EngineReport& report) {
  return rate(std::max(0, report.usage.num_output_tokens - 1), phases(report.timings).decode);
}

json::object usage_json(const engine::EngineReport& report) {
  const scheduler::Usage& usage = report.usage;
  return {{"prompt_tokens", usage.num_prompt_tokens},
          {"cached_tokens", usage.num_cached_tokens},
          {"completion_tokens", usage.num_output_tokens},
          {"total_tokens", usage.num_prompt_tokens + usage.num_output_tokens},
          {"draft_tokens", usage.num_draft_tokens},
          {"accepted_tokens", usage.num_accepted_tokens}};
}

json::object timings_json(const engine::EngineReport& report) {
  const Phases times = phases(report.timings);
  const int64_t computed = report.usage.num_prompt_tokens - report.usage.num_cached_tokens;
  return {{"queue_seconds", base::seconds(times.queue)},
          {"prefill_seconds", base::seconds(times.prefill)},
          {"decode_seconds", base::seconds(times.decode)},
          {"prefill_tokens_per_second", rate(computed, times.prefill)},
          {"decode_tokens_per_second", decode_rate(report)}};
}

std::string generation_summary(const engine::EngineReport& report) {
  const scheduler::Usage& usage = report.usage;
  if (usage.num_output_tokens == 0 && report.reason == scheduler::FinishReason::kCancelled) {
    return fmt::format("stopped within the {} prompt tokens", usage.num_prompt_tokens);
  }
  const std::string cached =
      usage.num_cached_tokens == 0 ? "" : fmt::format(" ({} cached)", usage.num_cached_tokens);
  const std::string drafts = usage.num_draft_tokens == 0
                                 ? ""
                                 : fmt::format(" ({} of {} drafts accepted)",
                                               usage.num_accepted_tokens, usage.num_draft_tokens);
  return fmt::format(
      "{} prompt tokens{} in {:.2f} s, then {} tokens at {:.1f} tokens/s{}; "
      "finished: {}",
      usage.num_prompt_tokens, cached, base::seconds(phases(report.timings).prefill),
      usage.num_output_tokens, decode_rate(report), drafts, name(report.reason));
}

}  // namespace ingot::cli
