#include "simulation/shadow_executor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"

namespace ingot::simulation {

const scheduler::StepResult& ShadowExecutor::execute(const scheduler::Batch& batch) {
  result_.sequences.assign(batch.sequences.size(), {});
  if (violation_) return result_;
  if (base::Status status = run_step(batch); !status) violation_ = std::move(status).error();
  return result_;
}

base::Status ShadowExecutor::run_step(const scheduler::Batch& batch) {
  TRY(cache_.begin_step(batch));
  compute(batch);
  return cache_.end_step(
      batch, [this](size_t index) { return std::span(drafts_[index]); }, result_);
}

void ShadowExecutor::compute(const scheduler::Batch& batch) {
  num_rows_in_step_ = 0;
  deepest_chain_in_step_ = 0;
  drafts_.assign(batch.sequences.size(), {});
  const auto fails = [this](const Entry& entry) {
    return live(entry).plan.failing_batch == cache_.request(entry.request).num_batches;
  };
  const bool all_fail = std::ranges::any_of(batch.sequences, [&](const Entry& entry) {
    return live(entry).plan.fails_whole_step && fails(entry);
  });
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const Entry& entry = batch.sequences[i];
    LiveRequest& request = live(entry);
    num_rows_in_step_ += static_cast<int32_t>(entry.tokens.size()) + entry.num_draft_tokens;
    deepest_chain_in_step_ = std::max(deepest_chain_in_step_, entry.num_draft_tokens);
    if (all_fail || fails(entry)) {
      request.failure = fmt::format("planned for batch {} of request {}",
                                    cache_.request(entry.request).num_batches, entry.request);
      result_.sequences[i].error = request.failure;
      continue;
    }
    const int32_t num_accepted = draft(entry, drafts_[i]);
    if (!entry.draws) continue;
    const int32_t end = entry.first_position + static_cast<int32_t>(entry.tokens.size());
    for (int32_t k = 0; k <= num_accepted; ++k) {
      result_.sequences[i].tokens.push_back(request.truth.token(end + k));
    }
  }
}

// Drafts after the tokens of an entry, and says how many are right.
int32_t ShadowExecutor::draft(const Entry& entry, std::vector<int32_t>& drafts) {
  const base::RandomStream luck = base::random_stream(seed_, "drafts");
  shadow::PrefixId prefix = cache_.request(entry.request).known.last_prefix();
  int32_t num_accepted = 0;
  for (int32_t i = 0; i < entry.num_draft_tokens; ++i) {
    const bool is_right = luck.uniform(prefix) < live(entry).plan.draft_acceptance;
    const int32_t right = next_token(seed_, prefix);
    drafts.push_back(is_right ? right : (right + 1) % kVocabulary);
    prefix = shadow::extended(prefix, drafts.back());
    if (is_right && num_accepted == i) ++num_accepted;
  }
  return num_accepted;
}

}  // namespace ingot::simulation
