#include "soak/answer.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ingot::soak {
namespace {

using engine::TokenLogprob;
using engine::TokenLogprobs;
using scheduler::FinishReason;

bool equal(const TokenLogprob& a, const TokenLogprob& b) {
  return a.id == b.id && a.logprob == b.logprob;
}

bool equal(const TokenLogprobs& a, const TokenLogprobs& b) {
  return equal(a.token, b.token) &&
         std::ranges::equal(a.top, b.top, [](const TokenLogprob& x, const TokenLogprob& y) {
           return equal(x, y);
         });
}

// The first place where `got` is not as `want`, of which it has to be all or a beginning.
template <typename T, typename Equal>
std::string first_difference(std::string_view what, const std::vector<T>& got,
                             const std::vector<T>& want, bool whole, Equal equals) {
  if (whole ? got.size() != want.size() : got.size() > want.size()) {
    return fmt::format("{} {} where there should be {}", got.size(), what, want.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (!equals(got[i], want[i])) return fmt::format("number {} of the {} is another", i, what);
  }
  return "";
}

}  // namespace

void append(Answer& answer, engine::EngineUpdate&& update) {
  std::ranges::copy(update.tokens, std::back_inserter(answer.tokens));
  std::ranges::move(update.logprobs, std::back_inserter(answer.logprobs));
  std::ranges::move(update.prompt_logprobs, std::back_inserter(answer.prompt_logprobs));
  if (update.report) answer.report = *std::move(update.report);
}

bool is_whole(const Answer& answer) {
  return answer.report.reason == FinishReason::kStop ||
         answer.report.reason == FinishReason::kLength;
}

std::string fault_of(const Answer& answer, const engine::EngineRequest& request) {
  const scheduler::Usage& usage = answer.report.usage;
  const auto num_prompt_tokens = static_cast<int32_t>(request.prompt.size());
  const auto num_tokens = static_cast<int32_t>(answer.tokens.size());
  if (usage.num_prompt_tokens != num_prompt_tokens || usage.num_output_tokens != num_tokens) {
    return fmt::format("its usage has {} + {} tokens, and it has {} + {}", usage.num_prompt_tokens,
                       usage.num_output_tokens, num_prompt_tokens, num_tokens);
  }
  const int32_t num_computed = usage.num_cached_tokens + usage.num_prefill_tokens;
  if (num_tokens > 0 ? num_computed != num_prompt_tokens : num_computed > num_prompt_tokens) {
    return fmt::format("{} tokens of its prompt were cached and {} computed, of {}",
                       usage.num_cached_tokens, usage.num_prefill_tokens, num_prompt_tokens);
  }
  if (request.wants_prompt_logprobs && usage.num_cached_tokens > 0) {
    return "it wants all logprobs of its prompt, and found some of it in the cache";
  }
  if (num_tokens > request.max_tokens.value_or(num_tokens)) return "it has more than max_tokens";
  if (answer.report.reason == FinishReason::kStop && num_tokens < request.min_tokens) {
    return "it stopped before min_tokens";
  }
  const bool wants_logprobs = request.sampling.num_top_logprobs.has_value();
  if (answer.logprobs.size() != (wants_logprobs ? answer.tokens.size() : 0)) {
    return fmt::format("{} tokens have {} logprobs", num_tokens, answer.logprobs.size());
  }
  for (size_t i = 0; i < answer.logprobs.size(); ++i) {
    if (answer.logprobs[i].token.id != answer.tokens[i]) return "a logprob is another token's";
  }
  const size_t num_wanted = request.wants_prompt_logprobs ? request.prompt.size() - 1 : 0;
  const size_t num_told = answer.prompt_logprobs.size();
  if (is_whole(answer) ? num_told != num_wanted : num_told > num_wanted) {
    return fmt::format("{} logprobs of its prompt of {} tokens were told", num_told,
                       num_prompt_tokens);
  }
  for (size_t i = 0; i < num_told; ++i) {
    if (answer.prompt_logprobs[i].token.id != request.prompt[i + 1]) {
      return "a logprob of its prompt is another token's";
    }
  }
  return "";
}

std::string difference(const Answer& answer, const Answer& whole) {
  const bool must_be_whole = is_whole(answer);
  const auto logprobs_equal = [](const TokenLogprobs& a, const TokenLogprobs& b) {
    return equal(a, b);
  };
  std::string found =
      first_difference("tokens", answer.tokens, whole.tokens, must_be_whole, std::equal_to<>());
  if (found.empty()) {
    found = first_difference("logprobs", answer.logprobs, whole.logprobs, must_be_whole,
                             logprobs_equal);
  }
  if (found.empty()) {
    found = first_difference("prompt's logprobs", answer.prompt_logprobs, whole.prompt_logprobs,
                             must_be_whole, logprobs_equal);
  }
  if (!found.empty() || !must_be_whole) return found;
  const engine::EngineReport& got = answer.report;
  const engine::EngineReport& want = whole.report;
  if (got.reason != want.reason || got.stopped_by_id != want.stopped_by_id ||
      got.stopped_by_string != want.stopped_by_string) {
    return fmt::format("it ended as {} where it should as {}, or at something else",
                       name(got.reason), name(want.reason));
  }
  return "";
}

}  // namespace ingot::soak
