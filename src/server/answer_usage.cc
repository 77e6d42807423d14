#include "server/answer_usage.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace ingot::server {
namespace {

namespace json = base::json;
using engine::EngineReport;

void keep_earlier(std::optional<base::Instant>& earliest, std::optional<base::Instant> instant) {
  if (instant && (!earliest || *instant < *earliest)) earliest = instant;
}

}  // namespace

json::object usage_json(std::span<const EngineReport> reports, int32_t num_choices_per_prompt,
                        int64_t num_reasoning_tokens) {
  const auto step = static_cast<size_t>(num_choices_per_prompt);
  CHECK(step > 0 && reports.size() % step == 0);
  int64_t prompt = 0;
  int64_t cached = 0;
  int64_t completion = 0;
  int64_t draft = 0;
  int64_t accepted = 0;
  for (size_t begin = 0; begin < reports.size(); begin += step) {
    const auto choices = reports.subspan(begin, step);
    prompt += choices.front().usage.num_prompt_tokens;
    cached += std::ranges::min(choices, {}, [](const EngineReport& report) {
                return report.usage.num_cached_tokens;
              }).usage.num_cached_tokens;
  }
  for (const EngineReport& report : reports) {
    completion += report.usage.num_output_tokens;
    draft += report.usage.num_draft_tokens;
    accepted += report.usage.num_accepted_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion},
          {"prompt_tokens_details", json::object{{"cached_tokens", cached}}},
          {"completion_tokens_details", json::object{{"reasoning_tokens", num_reasoning_tokens},
                                                     {"draft_tokens", draft},
                                                     {"accepted_tokens", accepted}}}};
}

json::object timings_json(std::span<const EngineReport> reports) {
  CHECK(!reports.empty());
  base::Instant arrived = reports.front().timings.arrived;
  base::Instant finished = reports.front().timings.finished;
  std::optional<base::Instant> admitted;
  std::optional<base::Instant> first_token;
  for (const EngineReport& report : reports) {
    arrived = std::min(arrived, report.timings.arrived);
    finished = std::max(finished, report.timings.finished);
    keep_earlier(admitted, report.timings.admitted);
    keep_earlier(first_token, report.timings.first_token);
  }
  json::object timings;
  if (admitted) timings["queue_seconds"] = base::seconds(*admitted - arrived);
  if (admitted && first_token) {
    timings["prefill_seconds"] = base::seconds(*first_token - *admitted);
  }
  if (first_token) {
    timings["first_token_seconds"] = base::seconds(*first_token - arrived);
    timings["decode_seconds"] = base::seconds(finished - *first_token);
  }
  timings["total_seconds"] = base::seconds(finished - arrived);
  return timings;
}

}  // namespace ingot::server
