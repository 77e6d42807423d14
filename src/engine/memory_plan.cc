#include "engine/memory_plan.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/grouped.h"
#include "base/progress.h"
#include "engine/sampler.h"
#include "model/kv_cache.h"

namespace ingot::engine {
namespace {

constexpr int64_t kPageTokens = scheduler::kPageTokens;

int64_t pages_for(int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

// A step holds a row for every running sequence, and two for a prefill that has to repeat one.
RunnerCapacity capacity_without_cache(const model::ModelConfig& config,
                                      const ServingLimits& limits) {
  RunnerCapacity capacity;
  capacity.num_slots = limits.max_running;
  capacity.context =
      std::clamp<int64_t>(limits.max_context.value_or(config.max_position_embeddings), 1,
                          config.max_position_embeddings);
  capacity.step_tokens = std::max<int64_t>(
      limits.max_step_tokens, std::max(limits.max_running, limits.max_draft_tokens) + int64_t{2});
  capacity.logit_rows =
      std::min(capacity.step_tokens,
               int64_t{limits.max_running} * (1 + int64_t{limits.max_draft_tokens}) + 1);
  return capacity;
}

}  // namespace

base::Result<MemoryPlan> plan_memory(const LoadedModel& model, int team_size,
                                     const ServingLimits& limits, uint64_t available_bytes) {
  const model::ModelConfig& config = model.config();
  const bool mtp = model.transformer().has_mtp();
  MemoryPlan plan;
  plan.capacity = capacity_without_cache(config, limits);
  if (limits.kv_tokens) {
    // Of no more positions than there is cache for.
    plan.capacity.context =
        std::min(plan.capacity.context, pages_for(*limits.kv_tokens) * kPageTokens);
  }
  plan.weight_bytes = model.weight_bytes();
  plan.available_bytes = available_bytes;
  plan.workspace_bytes =
      ModelRunner::workspace_bytes(model, team_size, plan.capacity) +
      static_cast<uint64_t>(team_size) * DrawScratch::size_bytes(config.vocab_size);
  const uint64_t left = available_bytes - std::min(available_bytes, plan.workspace_bytes);
  const auto page_bytes = static_cast<uint64_t>(
      kPageTokens *
      model::cache_bytes_per_token(config, model.cache_type(),
                                   mtp ? model::CacheLayers::kWithMtp : model::CacheLayers::kMain)
          .total());
  const int64_t useful_pages = plan.capacity.num_slots * pages_for(plan.capacity.context);
  const auto pages_that_fit = static_cast<int64_t>(left / page_bytes);
  int64_t num_pages = 0;
  if (limits.kv_tokens) {
    num_pages = pages_for(*limits.kv_tokens);
    plan.bound = MemoryPlan::Bound::kAsked;
  } else {
    num_pages = static_cast<int64_t>(kCacheShare * static_cast<double>(left)) /
                static_cast<int64_t>(page_bytes);
    plan.bound = MemoryPlan::Bound::kMemory;
    if (useful_pages < num_pages) {
      num_pages = useful_pages;
      plan.bound = MemoryPlan::Bound::kSequences;
    }
  }
  num_pages = std::min<int64_t>(num_pages, std::numeric_limits<int32_t>::max() / kPageTokens);
  plan.capacity.num_pages = num_pages;
  plan.kv_tokens = num_pages * kPageTokens;
  plan.cache_bytes = static_cast<uint64_t>(num_pages) * page_bytes;
  if (num_pages < 1 || num_pages > pages_that_fit) {
    return base::error(
        "a cache of {} tokens takes {} and a step's workspace {}, and {} are available",
        std::max<int64_t>(plan.kv_tokens, kPageTokens),
        base::format_bytes(std::max(plan.cache_bytes, page_bytes)),
        base::format_bytes(plan.workspace_bytes), base::format_bytes(available_bytes));
  }
  plan.capacity.context = std::min(plan.capacity.context, plan.kv_tokens);
  return plan;
}

std::string MemoryPlan::line() const {
  const auto why = [&]() -> std::string {
    switch (bound) {
      case Bound::kAsked:
        return "as asked for";
      case Bound::kMemory:
        return fmt::format("{:.0f}% of what is left of {}", kCacheShare * 100,
                           base::format_bytes(available_bytes));
      case Bound::kSequences:
        break;
    }
    return fmt::format("all that {} sequences of {} tokens can fill", capacity.num_slots,
                       base::grouped(static_cast<uint64_t>(capacity.context)));
  };
  return fmt::format("memory: {} of weights, {} of workspace, {} of cache for {} tokens ({})",
                     base::format_bytes(weight_bytes), base::format_bytes(workspace_bytes),
                     base::format_bytes(cache_bytes),
                     base::grouped(static_cast<uint64_t>(kv_tokens)), why());
}

}  // namespace ingot::engine
