#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include "engine/sampler.h"
#include "engine/test_model.h"
#include "model/kv_cache.h"
#include "model/workspace.h"

namespace ingot::engine {
namespace {

constexpr uint64_t kPlenty = uint64_t{8} << 30;

MemoryPlan plan(TestModel& model, const ServingLimits& limits, uint64_t available = kPlenty) {
  return plan_memory(*model.loaded, 1, limits, available).value();
}

TEST(MemoryPlan, HoldsWhatIsAskedFor) {
  TestModel model(1);
  const MemoryPlan asked = plan(model, {.max_running = 4, .max_step_tokens = 64, .kv_tokens = 100});
  EXPECT_EQ(asked.capacity.num_pages, 7);
  EXPECT_EQ(asked.kv_tokens, 112);
  EXPECT_EQ(asked.capacity.context, 48) << "the model's positions";
  EXPECT_EQ(asked.capacity.num_slots, 4);
  EXPECT_EQ(asked.capacity.step_tokens, 64);
  EXPECT_EQ(asked.weight_bytes, model.loaded->weight_bytes());
  EXPECT_TRUE(asked.line().contains("of cache for 112 tokens (as asked for)")) << asked.line();
  const MemoryPlan small = plan(model, {.kv_tokens = 20});
  EXPECT_EQ(small.capacity.context, 32) << "no more than there is cache for";
}

TEST(MemoryPlan, AStepHasARowForEverybody) {
  TestModel model(1);
  EXPECT_EQ(plan(model, {.max_running = 40, .max_step_tokens = 8}).capacity.step_tokens, 42);
  const MemoryPlan drafting = plan(model, {.max_running = 2, .max_draft_tokens = 5});
  EXPECT_EQ(drafting.capacity.logit_rows, 2 * 6 + 1);
}

TEST(MemoryPlan, TakesAShareOfWhatIsLeftAndNoMoreThanCanBeFilled) {
  TestModel model(1);
  const MemoryPlan whole = plan(model, {.max_running = 4});
  EXPECT_EQ(whole.kv_tokens, 4 * 48);
  EXPECT_TRUE(whole.line().contains("all that 4 sequences of 48 tokens can fill")) << whole.line();
  const uint64_t little = whole.workspace_bytes + whole.cache_bytes;
  const MemoryPlan part = plan(model, {.max_running = 4}, little);
  EXPECT_EQ(part.capacity.num_pages,
            static_cast<int64_t>(kCacheShare * static_cast<double>(whole.capacity.num_pages)));
  EXPECT_TRUE(part.line().contains("80% of what is left")) << part.line();
}

TEST(MemoryPlan, TooLittleIsAnErrorWithBothFigures) {
  TestModel model(1);
  for (const auto& limits : {ServingLimits{.kv_tokens = 1'000'000'000}, ServingLimits{}}) {
    const uint64_t available = limits.kv_tokens ? kPlenty : 1000;
    const auto refused = plan_memory(*model.loaded, 1, limits, available);
    ASSERT_FALSE(refused.has_value());
    EXPECT_TRUE(refused.error().message.contains("are available")) << refused.error().message;
  }
}

// What was planned is what is taken.
TEST(MemoryPlan, CountsWhatARunnerOfThisCapacityTakes) {
  TestModel model(1, model::MtpChoice::kLoad);
  const MemoryPlan planned = plan(model, {.max_running = 3, .max_draft_tokens = 2});
  EXPECT_EQ(planned.capacity.num_pages, 9);
  const auto& config = model.loaded->config();
  const model::Workspace workspace =
      model::Workspace::create(config, {.rows = planned.capacity.step_tokens,
                                        .logit_rows = planned.capacity.logit_rows,
                                        .context = planned.capacity.context,
                                        .team_size = 1,
                                        .mtp = true})
          .value();
  const auto hidden_rows =
      static_cast<uint64_t>(planned.capacity.num_slots + planned.capacity.step_tokens);
  EXPECT_EQ(planned.workspace_bytes,
            workspace.arena.used_bytes() +
                hidden_rows * static_cast<uint64_t>(config.hidden_size) * sizeof(float) +
                DrawScratch::size_bytes(config.vocab_size));
  const int64_t token_bytes =
      model::cache_bytes_per_token(config, model.loaded->cache_type(), model::CacheLayers::kWithMtp)
          .total();
  EXPECT_EQ(planned.cache_bytes, static_cast<uint64_t>(9 * scheduler::kPageTokens * token_bytes));
  EXPECT_NE(model.runner(planned.capacity), nullptr);
}

}  // namespace
}  // namespace ingot::engine
