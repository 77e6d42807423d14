#include "engine/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ingot::engine {
namespace {

constexpr int64_t kStepTokens = 256;

int64_t context_of(const GenerationRequest& request, const model::ModelConfig& config) {
  // The last token is only drawn, never computed.
  const int64_t wanted = static_cast<int64_t>(request.prompt.size()) + request.max_tokens - 1;
  return std::min(std::max<int64_t>(wanted, 1), config.max_position_embeddings);
}

}  // namespace

std::string_view name(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : "length";
}

ExecutorCapacity generation_capacity(const GenerationRequest& request,
                                     const model::ModelConfig& config) {
  const int64_t context = context_of(request, config);
  return {.step_tokens = std::min(kStepTokens, static_cast<int64_t>(request.prompt.size())),
          .logit_rows = 1,
          .context = context,
          .num_pages = (context + scheduler::kPageTokens - 1) / scheduler::kPageTokens,
          .num_slots = 1};
}

base::Result<Generation> generate(ModelExecutor& executor, const GenerationRequest& request,
                                  const base::Clock& clock) {
  const auto& eos = executor.config().eos_token_ids;
  const auto context = static_cast<size_t>(executor.capacity().context);
  const auto step_tokens = static_cast<size_t>(executor.capacity().step_tokens);
  Generation result;
  if (request.max_tokens == 0) return result;
  std::vector<int32_t> known = request.prompt;
  std::vector<int32_t> pages(static_cast<size_t>(executor.capacity().num_pages));
  std::iota(pages.begin(), pages.end(), 0);
  const base::Instant start = clock.now();
  base::Instant first_token = start;
  size_t computed = 0;
  while (true) {
    const size_t count = std::min(step_tokens, known.size() - computed);
    scheduler::Batch batch;
    scheduler::Batch::Sequence& sequence = batch.sequences.emplace_back();
    sequence.first_position = static_cast<int32_t>(computed);
    const auto begin = known.begin() + static_cast<ptrdiff_t>(computed);
    sequence.tokens.assign(begin, begin + static_cast<ptrdiff_t>(count));
    if (computed == 0) {
      batch.released_slots = {0};
      sequence.new_pages = pages;
    }
    computed += count;
    const bool draws = computed == known.size();
    if (draws) sequence.logit_rows = {static_cast<int32_t>(count) - 1};
    const std::span<const float> logits = executor.forward(batch);
    if (!draws) continue;
    TRY(check_finite(logits, fmt::format("after token {}", computed - 1)));
    const auto position = static_cast<int64_t>(result.token_ids.size());
    const int32_t token = sample(logits, request.sampling, position);
    const base::Instant now = clock.now();
    if (position == 0) first_token = now;
    result.prefill = first_token - start;
    result.decode = now - first_token;
    if (std::ranges::find(eos, token) != eos.end()) {
      result.finish_reason = FinishReason::kStop;
      return result;
    }
    result.token_ids.push_back(token);
    known.push_back(token);
    if (position + 1 == request.max_tokens || known.size() > context) return result;
  }
}

}  // namespace ingot::engine
