#include "engine/generation.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/check.h"

namespace ingot::engine {
namespace {

constexpr int64_t kStepTokens = 256;

}  // namespace

RunnerCapacity generation_capacity(int64_t context, const model::ModelConfig& config) {
  context = std::clamp<int64_t>(context, 1, config.max_position_embeddings);
  return {.step_tokens = std::min(kStepTokens, context),
          .logit_rows = 1,
          .context = context,
          .num_pages = (context + scheduler::kPageTokens - 1) / scheduler::kPageTokens,
          .num_slots = 1};
}

RunnerCapacity generation_capacity(const GenerationRequest& request,
                                   const model::ModelConfig& config) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  // The last token is only drawn, never computed.
  RunnerCapacity capacity = generation_capacity(prompt_tokens + request.max_tokens - 1, config);
  capacity.step_tokens = std::min(kStepTokens, prompt_tokens);
  return capacity;
}

// The tokens after the computed ones, as many as a step takes.
scheduler::Batch Generator::next_batch(const std::vector<int32_t>& known) const {
  const size_t computed = computed_.size();
  const auto step_tokens = static_cast<size_t>(runner_.capacity().step_tokens);
  const size_t count = std::min(step_tokens, known.size() - computed);
  scheduler::Batch batch;
  scheduler::Batch::Sequence& sequence = batch.sequences.emplace_back();
  sequence.first_position = static_cast<int32_t>(computed);
  const auto begin = known.begin() + static_cast<ptrdiff_t>(computed);
  sequence.tokens.assign(begin, begin + static_cast<ptrdiff_t>(count));
  if (computed == 0) {
    batch.released_slots = {0};
    sequence.new_pages.resize(static_cast<size_t>(runner_.capacity().num_pages));
    std::iota(sequence.new_pages.begin(), sequence.new_pages.end(), 0);
  }
  if (computed + count == known.size()) sequence.logit_rows = {static_cast<int32_t>(count) - 1};
  return batch;
}

std::span<const float> Generator::drawable(std::span<const float> logits,
                                           const GenerationRequest& request) {
  if (request.drawable_ids.empty()) return logits;
  logits_.assign(logits.begin(), logits.begin() + std::ssize(request.drawable_ids));
  for (size_t id = 0; id < logits_.size(); ++id) {
    if (request.drawable_ids[id] == 0) logits_[id] = -std::numeric_limits<float>::infinity();
  }
  return logits_;
}

base::Result<Generation> Generator::generate(const GenerationRequest& request,
                                             const GenerationHooks& hooks) {
  CHECK(!request.prompt.empty());
  const auto& eos = runner_.config().eos_token_ids;
  const auto context = static_cast<size_t>(runner_.capacity().context);
  Generation result;
  if (request.max_tokens == 0) return result;
  std::vector<int32_t> known = request.prompt;
  // The last token is computed in any case, for its logits.
  const auto common =
      std::mismatch(computed_.begin(), computed_.end(), known.begin(), std::prev(known.end()));
  computed_.erase(common.first, computed_.end());
  result.num_cached_tokens = computed_.size();
  const base::Instant start = clock_.now();
  base::Instant first_token = start;
  while (true) {
    if (hooks.wants_more && !hooks.wants_more()) {
      result.finish_reason = FinishReason::kCancelled;
      return result;
    }
    if (hooks.on_prompt && result.token_ids.empty()) hooks.on_prompt(computed_.size());
    const scheduler::Batch batch = next_batch(known);
    std::span<const float> logits = runner_.forward(batch);
    const std::vector<int32_t>& tokens = batch.sequences.front().tokens;
    computed_.insert(computed_.end(), tokens.begin(), tokens.end());
    if (logits.empty()) continue;
    TRY(check_finite(logits, fmt::format("after token {}", computed_.size() - 1)));
    logits = drawable(logits, request);
    const auto position = static_cast<int64_t>(result.token_ids.size());
    const int32_t token = sample(logits, request.sampling, position);
    const base::Instant now = clock_.now();
    if (position == 0) first_token = now;
    result.prefill = first_token - start;
    result.decode = now - first_token;
    if (std::ranges::find(eos, token) != eos.end()) {
      result.finish_reason = FinishReason::kStop;
      return result;
    }
    result.token_ids.push_back(token);
    if (hooks.on_token) TRY(hooks.on_token(token));
    known.push_back(token);
    if (position + 1 == request.max_tokens || known.size() > context) return result;
  }
}

}  // namespace ingot::engine
