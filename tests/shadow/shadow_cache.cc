#include "shadow/shadow_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ingot::shadow {
namespace {

// What no prefix has: a slot that nobody may read.
constexpr PrefixId kNothing = 0;

}  // namespace

ShadowCache::ShadowCache(const scheduler::SchedulerConfig& config)
    : config_(config),
      tables_(config.num_pages, config.num_slots),
      latents_(static_cast<size_t>(config.num_pages) * scheduler::kPageTokens, kNothing),
      mtp_rows_(latents_.size(), kNothing) {}

void ShadowCache::add(scheduler::Request request) {
  const scheduler::RequestId id = request.id;
  const bool is_new =
      requests_.emplace(id, ShadowRequest(std::move(request), num_arrivals_++)).second;
  CHECK(is_new, "a request is added twice");
}

void ShadowCache::remove(scheduler::RequestId id) {
  CHECK(requests_.erase(id) == 1, "a request ends that was never added, or ends twice");
}

const ShadowRequest& ShadowCache::request(scheduler::RequestId id) const {
  const auto found = requests_.find(id);
  CHECK(found != requests_.end(), "no such request");
  return found->second;
}

base::Status ShadowCache::begin_step(const scheduler::Batch& batch) {
  ++num_steps_;
  if (batch.sequences.empty()) {
    return base::error("a batch without sequences is to be executed");
  }
  TRY(release_slots(batch));
  for (const Entry& entry : batch.sequences) TRY(check_entry(entry));
  // Only now is it known who got which page.
  for (const Entry& entry : batch.sequences) TRY(check_writes(entry));
  TRY(check_budgets(batch));
  TRY(check_everybody_decodes(batch));
  return check_first_prefill(batch);
}

base::Status ShadowCache::end_step(const scheduler::Batch& batch, const DraftsOf& drafts,
                                   const scheduler::StepResult& result) {
  if (result.sequences.size() != batch.sequences.size()) {
    return base::error("a batch of {} sequences has {} results", batch.sequences.size(),
                       result.sequences.size());
  }
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const Entry& entry = batch.sequences[i];
    const scheduler::StepResult::Sequence& drawn = result.sequences[i];
    if (!drawn.error.empty()) {
      forget_rows(entry);
      continue;
    }
    TRY(check_result(entry, drafts(i), drawn));
    write_rows(entry, drafts(i));
    count_rows(entry, entry.draws ? static_cast<int32_t>(drawn.tokens.size()) - 1 : 0);
    ShadowRequest& request = requests_.find(entry.request)->second;
    for (const int32_t token : drawn.tokens) request.known.append(token);
  }
  return {};
}

void ShadowCache::write(const PageTables::Table& table, int32_t position, PrefixId prefix) {
  const auto slot = static_cast<size_t>(PageTables::cache_slot(table, position));
  latents_[slot] = prefix;
  if (has_mtp_rows() && position > 0) mtp_rows_[slot] = prefix;
}

// It stopped somewhere in the middle: nothing that it was to write can be relied on.
void ShadowCache::forget_rows(const Entry& entry) {
  const int32_t begin = entry.first_position + entry.num_read_only_tokens;
  const int32_t end =
      entry.first_position + static_cast<int32_t>(entry.tokens.size()) + entry.num_draft_tokens;
  for (int32_t position = begin; position < end; ++position) {
    write(tables_.of_slot(entry.slot), position, kNothing);
  }
}

// The chain writes MTP rows at the drafted positions, from its own hidden states; verification then
// writes all rows, of the drafts as they are, right or wrong.
void ShadowCache::write_rows(const Entry& entry, std::span<const int32_t> drafts) {
  const PageTables::Table& table = tables_.of_slot(entry.slot);
  const PrefixChain& known = request(entry.request).known;
  const int32_t begin = entry.first_position + entry.num_read_only_tokens;
  int32_t end = entry.first_position + static_cast<int32_t>(entry.tokens.size());
  for (int32_t position = begin; position < end; ++position) {
    write(table, position, known.prefix(position));
  }
  PrefixId prefix = known.prefix(end - 1);
  for (const int32_t draft : drafts) {
    prefix = extended(prefix, draft);
    write(table, end++, prefix);
  }
}

void ShadowCache::count_rows(const Entry& entry, int32_t num_accepted) {
  ShadowRequest& request = requests_.find(entry.request)->second;
  const int32_t begin = entry.first_position + entry.num_read_only_tokens;
  const int32_t end = entry.first_position + static_cast<int32_t>(entry.tokens.size());
  const int32_t first_new = std::clamp(request.num_held, begin, end);
  const int32_t new_of_prompt = std::max(0, std::min(end, request.num_prompt_tokens) - first_new);
  const RowCounts rows = {.prefill = new_of_prompt,
                          .decode = end - first_new - new_of_prompt + num_accepted,
                          .recomputed = first_new - begin,
                          .read_only = entry.num_read_only_tokens,
                          .accepted = num_accepted,
                          .rejected = entry.num_draft_tokens - num_accepted};
  rows_.add(rows);
  request.rows.add(rows);
  for (const int32_t row : entry.logit_rows) {
    if (entry.first_position + row == request.num_prompt_logits) ++request.num_prompt_logits;
  }
  request.num_computed = end + num_accepted;
  request.num_held = std::max(request.num_held, request.num_computed);
  PageTables::Table& table = tables_.of_slot(entry.slot);
  table.num_computed = request.num_computed;
  table.hidden_position = request.num_computed - 1;
  table.decodes = entry.draws;
}

}  // namespace ingot::shadow
