#include "simulation/shadow_executor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"

namespace ingot::simulation {
namespace {

// What no prefix has.
constexpr PrefixId kNothing = 0;

// A row that the chain made while it drafted: whatever its prefix, nobody may read it.
PrefixId draft_made(PrefixId prefix) { return ~prefix; }

}  // namespace

ShadowExecutor::ShadowExecutor(const scheduler::SchedulerConfig& config, uint64_t seed,
                               LiveRequests& requests)
    : config_(config),
      seed_(seed),
      requests_(requests),
      tables_(config.num_pages, config.num_slots),
      latents_(static_cast<size_t>(config.num_pages) * scheduler::kPageTokens, kNothing),
      mtp_rows_(latents_.size(), kNothing) {}

const scheduler::StepResult& ShadowExecutor::execute(const scheduler::Batch& batch) {
  ++num_steps_;
  settlements_.clear();
  result_.sequences.assign(batch.sequences.size(), {});
  if (violation_) return result_;
  if (base::Status status = check(batch); status) {
    compute(batch);
  } else {
    violation_ = std::move(status).error();
  }
  return result_;
}

LiveRequest& ShadowExecutor::request_of(const Entry& entry) {
  return requests_.find(entry.request)->second;
}

void ShadowExecutor::compute(const scheduler::Batch& batch) {
  num_rows_in_step_ = 0;
  deepest_chain_in_step_ = 0;
  const bool all_fail = std::ranges::any_of(batch.sequences, [this](const Entry& entry) {
    const RequestPlan& plan = request_of(entry).plan;
    return plan.fails_whole_step && plan.failing_batch == request_of(entry).num_batches;
  });
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const Entry& entry = batch.sequences[i];
    LiveRequest& request = request_of(entry);
    num_rows_in_step_ += static_cast<int32_t>(entry.tokens.size()) + entry.num_draft_tokens;
    deepest_chain_in_step_ = std::max(deepest_chain_in_step_, entry.num_draft_tokens);
    if (all_fail || request.plan.failing_batch == request.num_batches) {
      request.failure =
          fmt::format("planned for batch {} of request {}", request.num_batches, entry.request);
      result_.sequences[i].error = request.failure;
      fail_entry(entry);
    } else {
      compute_entry(entry, result_.sequences[i]);
    }
  }
}

void ShadowExecutor::write(const PageTables::Table& table, int32_t position, PrefixId latent,
                           PrefixId mtp_row) {
  const auto slot = static_cast<size_t>(PageTables::cache_slot(table, position));
  latents_[slot] = latent;
  if (speculates() && position > 0) mtp_rows_[slot] = mtp_row;
}

// It stopped somewhere in the middle: nothing that it was to write can be relied on.
void ShadowExecutor::fail_entry(const Entry& entry) {
  const PageTables::Table& table = tables_.of_slot(entry.slot);
  LiveRequest& request = request_of(entry);
  const int32_t begin = entry.first_position + entry.num_read_only_tokens;
  const int32_t end = entry.first_position + static_cast<int32_t>(entry.tokens.size());
  for (int32_t position = begin; position < end + entry.num_draft_tokens; ++position) {
    write(table, position, kNothing, draft_made(request.truth.prefix(position)));
  }
}

void ShadowExecutor::compute_entry(const Entry& entry, scheduler::StepResult::Sequence& result) {
  PageTables::Table& table = tables_.of_slot(entry.slot);
  LiveRequest& request = request_of(entry);
  const int32_t begin = entry.first_position + entry.num_read_only_tokens;
  const int32_t end = entry.first_position + static_cast<int32_t>(entry.tokens.size());
  for (int32_t position = begin; position < end; ++position) {
    const PrefixId prefix = request.truth.prefix(position);
    write(table, position, prefix, prefix);
  }
  const int32_t num_accepted = verify_drafts(entry, table, request);
  Settlement settlement = {.request = entry.request, .num_computed = end + num_accepted};
  if (entry.draws) {
    for (int32_t i = 0; i <= num_accepted; ++i) {
      result.tokens.push_back(request.truth.token(end + i));
    }
    settlement.num_drawn = num_accepted + 1;
  }
  const int32_t first_new = std::clamp(request.num_held, begin, end);
  const int32_t new_of_prompt = std::max(0, std::min(end, request.num_prompt_tokens) - first_new);
  settlement.rows = {.prefill = new_of_prompt,
                     .decode = end - first_new - new_of_prompt + num_accepted,
                     .recomputed = first_new - begin,
                     .read_only = entry.num_read_only_tokens,
                     .accepted = num_accepted,
                     .rejected = entry.num_draft_tokens - num_accepted};
  for (const int32_t row : entry.logit_rows) {
    if (entry.first_position + row == request.num_prompt_logits + settlement.num_prompt_logits) {
      ++settlement.num_prompt_logits;
    }
  }
  table.num_computed = end + num_accepted;
  table.hidden_position = table.num_computed - 1;
  table.decodes = entry.draws;
  settlements_.push_back(settlement);
}

// The chain writes MTP rows at the drafted positions, from its own hidden states; verification then
// writes all rows, of the drafts as they are, right or wrong. Of these, says how many are right.
int32_t ShadowExecutor::verify_drafts(const Entry& entry, const PageTables::Table& table,
                                      LiveRequest& request) {
  const int32_t end = entry.first_position + static_cast<int32_t>(entry.tokens.size());
  const base::RandomStream luck = base::random_stream(seed_, "drafts");
  int32_t num_accepted = 0;
  PrefixId prefix = request.truth.prefix(end - 1);
  for (int32_t i = 0; i < entry.num_draft_tokens; ++i) {
    const bool is_right = luck.uniform(prefix) < request.plan.draft_acceptance;
    const int32_t right = next_token(seed_, prefix);
    prefix = extended(prefix, is_right ? right : (right + 1) % kVocabulary);
    if (is_right && num_accepted == i) ++num_accepted;
    write(table, end + i, prefix, prefix);
  }
  return num_accepted;
}

void ShadowExecutor::settle() {
  for (const Settlement& settlement : settlements_) {
    rows_.add(settlement.rows);
    const auto found = requests_.find(settlement.request);
    if (found == requests_.end()) continue;
    LiveRequest& request = found->second;
    request.rows.add(settlement.rows);
    request.num_computed = settlement.num_computed;
    request.num_held = std::max(request.num_held, settlement.num_computed);
    request.num_known += settlement.num_drawn;
    request.num_prompt_logits += settlement.num_prompt_logits;
  }
}

}  // namespace ingot::simulation
