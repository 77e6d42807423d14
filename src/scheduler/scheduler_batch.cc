#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "scheduler/scheduler_state.h"

namespace ingot::scheduler {

void Scheduler::State::compose_batch() {
  batch_.released_slots.clear();
  in_flight_.clear();
  decoding_.clear();
  prefilling_.clear();
  for (Sequence* sequence : running_) {
    (sequence->phase == Sequence::Phase::kDecoding ? decoding_ : prefilling_).push_back(sequence);
  }
  choose_drafts();
  share_out_prefill();
  for (size_t i = 0; i < decoding_.size(); ++i) append_decode(*decoding_[i], num_drafts_[i]);
  for (size_t i = 0; i < prefilling_.size(); ++i) {
    if (shares_[i].rows > 0) append_prefill(*prefilling_[i], shares_[i].rows);
  }
  set_spare_entries_aside();
  if (!batch_.sequences.empty()) std::swap(batch_.released_slots, released_slots_);
}

// The entries beyond the batch's keep their memory for later ones.
void Scheduler::State::set_spare_entries_aside() {
  while (batch_.sequences.size() > in_flight_.size()) {
    spare_entries_.push_back(std::move(batch_.sequences.back()));
    batch_.sequences.pop_back();
  }
}

int32_t Scheduler::State::max_drafts(const Sequence& sequence, int32_t depth) const {
  return std::min({depth, sequence.request.max_draft_tokens, sequence.num_left_to_draw() - 1});
}

int32_t Scheduler::State::max_logit_rows() const {
  return config_.max_logit_rows == 0 ? config_.max_step_tokens : config_.max_logit_rows;
}

// The depth that is worth it, as far as rows and logits reach; beside prefill, half as far.
void Scheduler::State::choose_drafts() {
  const auto num_decoding = static_cast<int32_t>(decoding_.size());
  const auto num_prefilling = static_cast<int32_t>(prefilling_.size());
  num_drafts_.assign(decoding_.size(), 0);
  depth_of_step_ = 0;
  if (num_decoding == 0) return;
  int32_t rows = config_.max_step_tokens - num_decoding;
  int32_t logit_rows = max_logit_rows() - num_decoding - num_prefilling;
  int32_t prefill_rows = 0;
  for (const Sequence* sequence : prefilling_) {
    prefill_rows = std::min(rows, prefill_rows + std::min(rows, sequence->num_rows_left()));
  }
  depth_of_step_ = depth_.choose(num_decoding, prefill_rows);
  if (num_prefilling > 0) rows /= 2, logit_rows /= 2;
  const auto num_drafts = [&] {
    int64_t sum = 0;
    for (const Sequence* sequence : decoding_) sum += max_drafts(*sequence, depth_of_step_);
    return sum;
  };
  while (depth_of_step_ > 0 && num_drafts() > std::min(rows, logit_rows)) --depth_of_step_;
  for (size_t i = 0; i < decoding_.size(); ++i) {
    num_drafts_[i] = secure_draft_pages(*decoding_[i], max_drafts(*decoding_[i], depth_of_step_));
  }
}

// Drafts are not worth a preemption: they get pages only where everybody may still grow.
int32_t Scheduler::State::secure_draft_pages(Sequence& sequence, int32_t num_drafts) {
  const int32_t wanted = pages_for(int64_t{sequence.num_known()} + num_drafts);
  const auto held = static_cast<int32_t>(sequence.holding.pages.size());
  const bool may_grow = wanted <= sequence.holding.num_promised ||
                        account_.num_available() > static_cast<int32_t>(running_.size());
  if (wanted <= held || (may_grow && account_.grow(sequence.holding, wanted))) return num_drafts;
  return std::min(num_drafts, held * kPageTokens - sequence.num_known());
}

void Scheduler::State::share_out_prefill() {
  int32_t rows = config_.max_step_tokens - static_cast<int32_t>(decoding_.size());
  for (const int32_t drafts : num_drafts_) rows -= drafts;
  // Everybody gets the logits of one row; what is left goes to those that want more, in order.
  int32_t logit_rows = max_logit_rows() - (config_.max_step_tokens - rows) -
                       static_cast<int32_t>(prefilling_.size());
  shares_.clear();
  for (const Sequence* sequence : prefilling_) {
    PrefillShare share{.rows_left = sequence->num_rows_left(),
                       .min_rows = sequence->repeats_last ? 2 : 1,
                       .max_rows = rows};
    if (sequence->request.wants_prompt_logits && config_.max_logit_rows > 0) {
      const int32_t more = std::min(logit_rows, share.rows_left - 1);
      share.max_rows = std::min(rows, 1 + more);
      logit_rows -= more;
    }
    shares_.push_back(share);
  }
  share_prefill(shares_, rows);
  for (size_t i = 0; i < prefilling_.size(); ++i) {
    prefilling_[i]->is_stalled = shares_[i].rows == 0;
    // What nobody computes is not worth waiting for.
    if (shares_[i].rows > 0) continue;
    release_followers(*prefilling_[i], std::numeric_limits<int32_t>::max());
  }
}

Batch::Sequence& Scheduler::State::append_entry(Sequence& sequence) {
  // The last batch's entries are written over in place.
  if (in_flight_.size() == batch_.sequences.size()) {
    if (spare_entries_.empty()) spare_entries_.emplace_back();
    batch_.sequences.push_back(std::move(spare_entries_.back()));
    spare_entries_.pop_back();
  }
  Batch::Sequence& entry = batch_.sequences[in_flight_.size()];
  in_flight_.push_back(&sequence);
  sequence.in_flight = true;
  entry.request = sequence.request.id;
  entry.slot = sequence.slot;
  entry.num_draft_tokens = 0;
  entry.num_read_only_tokens = 0;
  entry.tokens.clear();
  entry.new_pages.clear();
  entry.logit_rows.clear();
  return entry;
}

void Scheduler::State::tell_new_pages(Sequence& sequence, Batch::Sequence& entry) {
  const std::vector<int32_t>& pages = sequence.holding.pages;
  entry.new_pages.assign(pages.begin() + sequence.num_told_pages, pages.end());
  sequence.num_told_pages = static_cast<int32_t>(pages.size());
}

void Scheduler::State::append_decode(Sequence& sequence, int32_t num_drafts) {
  CHECK(sequence.num_rows_left() == 1);
  Batch::Sequence& entry = append_entry(sequence);
  entry.first_position = sequence.num_computed;
  entry.tokens.push_back(sequence.tokens.back());
  entry.num_draft_tokens = num_drafts;
  entry.logit_rows.push_back(0);
  entry.draws = true;
  tell_new_pages(sequence, entry);
}

void Scheduler::State::append_prefill(Sequence& sequence, int32_t num_rows) {
  Batch::Sequence& entry = append_entry(sequence);
  entry.num_read_only_tokens = sequence.repeats_last ? 1 : 0;
  entry.first_position = sequence.num_computed - entry.num_read_only_tokens;
  const auto first = sequence.tokens.begin() + entry.first_position;
  entry.tokens.assign(first, first + num_rows);
  const int32_t end = entry.first_position + num_rows;
  entry.draws = end == sequence.num_known() && sequence.num_left_to_draw() > 0;
  const bool has_pages = account_.grow(sequence.holding, pages_for(end));
  CHECK(has_pages, "a page that was promised cannot be had");
  if (sequence.request.wants_prompt_logits) {
    const int32_t from = std::max(entry.first_position, sequence.num_prompt_logits);
    for (int32_t position = from; position < std::min(end, sequence.num_prompt_tokens);
         ++position) {
      entry.logit_rows.push_back(position - entry.first_position);
    }
    sequence.num_prompt_logits =
        std::max(sequence.num_prompt_logits, std::min(end, sequence.num_prompt_tokens));
  }
  const bool has_last = !entry.logit_rows.empty() && entry.logit_rows.back() == num_rows - 1;
  if (entry.draws && !has_last) entry.logit_rows.push_back(num_rows - 1);
  tell_new_pages(sequence, entry);
}

}  // namespace ingot::scheduler
