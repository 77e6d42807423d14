// What a batch and its result have to be like: the rules of scheduler/batch.h, held against what
// the shadow remembers.

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/ranges.h>

#include "shadow/shadow_cache.h"

namespace ingot::shadow {

using base::error;
using scheduler::kPageTokens;

namespace {

int32_t num_tokens(const scheduler::Batch::Sequence& entry) {
  return static_cast<int32_t>(entry.tokens.size());
}

int32_t pages_for(int32_t num_positions) { return (num_positions + kPageTokens - 1) / kPageTokens; }

}  // namespace

base::Status ShadowCache::release_slots(const scheduler::Batch& batch) {
  for (const int32_t slot : batch.released_slots) {
    if (slot < 0 || slot >= config_.num_slots) {
      return error("slot {} is released and does not exist", slot);
    }
    const PageTables::Table& table = tables_.of_slot(slot);
    if (const auto found = requests_.find(table.request); table.taken && found != requests_.end()) {
      ++found->second.num_preemptions;
    }
    tables_.release(slot);
  }
  for (const PageTables::Table& table : tables_.tables()) {
    if (table.taken && !requests_.contains(table.request)) {
      return error("request {} has ended and keeps its slot", table.request);
    }
  }
  return {};
}

base::Status ShadowCache::check_entry(const Entry& entry) {
  const auto found = requests_.find(entry.request);
  if (found == requests_.end()) return error("request {} has ended and is computed", entry.request);
  ShadowRequest& request = found->second;
  PageTables::Table& table = *TRY(tables_.take(entry.slot, entry.request));
  const bool starts = table.pages.empty();
  TRY(check_rows(entry, request));
  TRY(check_start(entry, request, table));
  TRY(check_pages(entry, table));
  TRY(check_reads(entry, request, table));
  if (starts) {
    ++request.num_starts;
    const int32_t num_found = entry.first_position + entry.num_read_only_tokens;
    const int32_t of_prompt = std::min(num_found, request.num_prompt_tokens) - request.num_held;
    request.num_found += std::max(0, of_prompt);
    request.num_held = std::max(request.num_held, num_found);
  }
  ++request.num_batches;
  request.last_step = num_steps_;
  return {};
}

base::Status ShadowCache::check_rows(const Entry& entry, const ShadowRequest& request) const {
  const scheduler::Request& asked = request.asked;
  const int32_t end = entry.first_position + num_tokens(entry);
  if (entry.tokens.empty()) return error("request {} has no row", entry.request);
  if (entry.first_position < 0 || end > request.num_known()) {
    return error("request {} computes positions {} to {} and knows {} tokens", entry.request,
                 entry.first_position, end, request.num_known());
  }
  for (int32_t i = 0; i < num_tokens(entry); ++i) {
    const int32_t token = entry.tokens[static_cast<size_t>(i)];
    if (token == request.known.token(entry.first_position + i)) continue;
    return error("request {} has a wrong token at position {}", entry.request,
                 entry.first_position + i);
  }
  if (entry.draws != (end == request.num_known() && asked.max_tokens > 0)) {
    return error("request {} draws {} {} of {} known tokens", entry.request,
                 entry.draws ? "after" : "nothing after", end, request.num_known());
  }
  const int32_t most_drafts = std::min({config_.max_draft_tokens, asked.max_draft_tokens,
                                        asked.max_tokens - request.num_drawn() - 1});
  if (entry.num_draft_tokens > 0 && (!speculates() || entry.num_draft_tokens > most_drafts)) {
    return error("request {} drafts {} tokens where {} could be of use", entry.request,
                 entry.num_draft_tokens, most_drafts);
  }
  return check_logit_rows(entry, request);
}

base::Status ShadowCache::check_logit_rows(const Entry& entry, const ShadowRequest& request) const {
  const int32_t end = entry.first_position + num_tokens(entry);
  std::vector<int32_t> wanted;
  if (request.asked.wants_prompt_logits) {
    for (int32_t position = std::max(entry.first_position, request.num_prompt_logits);
         position < std::min(end, request.num_prompt_tokens); ++position) {
      wanted.push_back(position - entry.first_position);
    }
  }
  const int32_t last = num_tokens(entry) - 1;
  if (entry.draws && (wanted.empty() || wanted.back() != last)) wanted.push_back(last);
  if (entry.logit_rows == wanted) return {};
  return error("request {} has {} logit rows where {} are wanted", entry.request,
               entry.logit_rows.size(), wanted.size());
}

// That it goes on where the slot stands, or starts anew where cached pages end.
base::Status ShadowCache::check_start(const Entry& entry, const ShadowRequest& request,
                                      const PageTables::Table& table) const {
  const int32_t num_found = entry.first_position + entry.num_read_only_tokens;
  const bool needs_hidden = has_mtp_rows() && num_found > 0;
  if (entry.num_read_only_tokens < 0 || entry.num_read_only_tokens > num_tokens(entry)) {
    return error("request {} has {} read-only tokens of {}", entry.request,
                 entry.num_read_only_tokens, num_tokens(entry));
  }
  if (entry.num_draft_tokens > 0 &&
      (num_tokens(entry) != 1 || table.hidden_position != entry.first_position - 1)) {
    return error("request {} drafts and has no hidden state to begin with", entry.request);
  }
  if (!table.pages.empty()) {
    if (entry.first_position != table.num_computed || entry.num_read_only_tokens != 0) {
      return error("request {} goes on at {} where its slot stands at {}", entry.request,
                   entry.first_position, table.num_computed);
    }
    return {};
  }
  const bool may_find = config_.prefix_cache && request.asked.reads_prefix_cache;
  if (num_found % kPageTokens != 0 || (num_found > 0 && !may_find)) {
    return error("request {} starts at {}, where no cached page ends", entry.request, num_found);
  }
  const bool repeats = num_found > 0 && (needs_hidden || num_found == request.num_known());
  if (entry.num_read_only_tokens != (repeats ? 1 : 0)) {
    return error("request {} starts after {} cached tokens and repeats {}: {}", entry.request,
                 num_found, entry.num_read_only_tokens,
                 repeats ? "the last one's hidden state is missing" : "that is for nothing");
  }
  return {};
}

// Pages are added when a row needs them and not before.
base::Status ShadowCache::check_pages(const Entry& entry, PageTables::Table& table) {
  const int32_t num_positions = entry.first_position + num_tokens(entry) + entry.num_draft_tokens;
  if (num_positions > config_.max_context) {
    return error("request {} has {} positions, more than the context", entry.request,
                 num_positions);
  }
  const auto held = static_cast<int32_t>(table.pages.size());
  const int32_t needed = std::max(held, pages_for(num_positions));
  const int32_t given = held + static_cast<int32_t>(entry.new_pages.size());
  if (given < needed) {
    return error("request {} has too few pages: {} for {} positions", entry.request, given,
                 num_positions);
  }
  if (given > needed) {
    return error("request {} has too many pages: {} for {} positions", entry.request, given,
                 num_positions);
  }
  return tables_.append(table, entry.new_pages);
}

base::Status ShadowCache::check_reads(const Entry& entry, const ShadowRequest& request,
                                      const PageTables::Table& table) const {
  const int32_t num_read = entry.first_position + entry.num_read_only_tokens;
  for (int32_t position = 0; position < num_read; ++position) {
    const auto slot = static_cast<size_t>(PageTables::cache_slot(table, position));
    const PrefixId prefix = request.known.prefix(position);
    if (latents_[slot] != prefix) {
      return error("request {} reads position {} in page {}, which holds another prefix",
                   entry.request, position, slot / kPageTokens);
    }
    if (has_mtp_rows() && position > 0 && mtp_rows_[slot] != prefix) {
      return error("request {} reads the MTP row of position {} in page {}, which is another's",
                   entry.request, position, slot / kPageTokens);
    }
  }
  return {};
}

base::Status ShadowCache::check_writes(const Entry& entry) const {
  const PageTables::Table& table = tables_.of_slot(entry.slot);
  const int32_t begin = entry.first_position + entry.num_read_only_tokens;
  const int32_t end = entry.first_position + num_tokens(entry) + entry.num_draft_tokens;
  if (begin == end) return {};
  for (int32_t index = begin / kPageTokens; index < pages_for(end); ++index) {
    const int32_t page = table.pages[static_cast<size_t>(index)];
    if (tables_.num_sharers(page) > 1) {
      return error("request {} writes into page {}, which others read", entry.request, page);
    }
  }
  return {};
}

base::Status ShadowCache::check_budgets(const scheduler::Batch& batch) const {
  int32_t num_rows = 0;
  int32_t num_logit_rows = 0;
  for (const Entry& entry : batch.sequences) {
    num_rows += num_tokens(entry) + entry.num_draft_tokens;
    num_logit_rows += static_cast<int32_t>(entry.logit_rows.size()) + entry.num_draft_tokens;
    const auto is_same = [&](const Entry& other) { return other.request == entry.request; };
    if (std::ranges::count_if(batch.sequences, is_same) > 1) {
      return error("request {} is in a batch twice", entry.request);
    }
  }
  if (num_rows > config_.max_step_tokens) {
    return error("a step has {} rows, more than {}", num_rows, config_.max_step_tokens);
  }
  if (config_.max_logit_rows > 0 && num_logit_rows > config_.max_logit_rows) {
    return error("a step has {} logit rows, more than {}", num_logit_rows, config_.max_logit_rows);
  }
  return {};
}

base::Status ShadowCache::check_everybody_decodes(const scheduler::Batch& batch) const {
  for (const PageTables::Table& table : tables_.tables()) {
    if (!table.taken || !table.decodes) continue;
    const auto is_its = [&](const Entry& entry) { return entry.request == table.request; };
    if (std::ranges::none_of(batch.sequences, is_its)) {
      return error("request {} decodes and is left out of a step", table.request);
    }
  }
  return {};
}

// Of those who prefill, the first one gets half of what decoding and its drafts leave, or all that
// it needs; and drafts leave half. Wanted prompt logits may hold it up, but never stop it.
base::Status ShadowCache::check_first_prefill(const scheduler::Batch& batch) const {
  const ShadowRequest* first = nullptr;
  for (const PageTables::Table& table : tables_.tables()) {
    if (!table.taken || table.decodes) continue;
    const ShadowRequest& request = requests_.find(table.request)->second;
    if (first == nullptr || request.goes_before(*first)) first = &request;
  }
  if (first == nullptr) return {};

  int32_t num_decoding = 0, num_drafts = 0, num_rows = 0, num_rows_left = 0;
  for (const Entry& entry : batch.sequences) {
    if (tables_.of_slot(entry.slot).decodes) ++num_decoding;
    num_drafts += entry.num_draft_tokens;
    if (entry.request != first->asked.id) continue;
    num_rows = num_tokens(entry);
    num_rows_left = first->num_known() - entry.first_position;
  }
  const int32_t beside_decoding = config_.max_step_tokens - num_decoding;
  if (num_drafts > beside_decoding / 2) {
    return error("{} drafts leave prefill less than half of {} rows", num_drafts, beside_decoding);
  }
  const int32_t half = (beside_decoding - num_drafts + 1) / 2;
  const int32_t due = first->asked.wants_prompt_logits ? 1 : std::min(half, num_rows_left);
  if (num_rows == 0 || num_rows < due) {
    return error("request {} is the first to prefill and gets {} rows of {}", first->asked.id,
                 num_rows, due);
  }
  return {};
}

base::Status ShadowCache::check_stats(const scheduler::SchedulerStats& stats) const {
  if (stats.num_steps != num_steps_) {
    return error("{} steps, by the stats {}", num_steps_, stats.num_steps);
  }
  const int64_t num_rows = stats.num_prefill_tokens + stats.num_decode_tokens +
                           stats.num_recomputed_tokens + stats.num_read_only_tokens +
                           stats.num_rejected_tokens;
  if (num_rows != rows_.total() || stats.num_read_only_tokens != rows_.read_only ||
      stats.num_rejected_tokens != rows_.rejected || stats.num_accepted_tokens != rows_.accepted) {
    return error(
        "{} rows, {} read-only, {} drafts accepted and {} rejected; by the stats {}, {}, {} and {}",
        rows_.total(), rows_.read_only, rows_.accepted, rows_.rejected, num_rows,
        stats.num_read_only_tokens, stats.num_accepted_tokens, stats.num_rejected_tokens);
  }
  const auto sum = [](const auto& counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  };
  if (sum(stats.accepted_by_position) != rows_.accepted ||
      sum(stats.drafted_by_position) != rows_.accepted + rows_.rejected ||
      !std::ranges::is_sorted(stats.accepted_by_position, std::greater())) {
    return error("by position [{}] drafts, [{}] of them accepted; {} accepted and {} rejected",
                 fmt::join(stats.drafted_by_position, ", "),
                 fmt::join(stats.accepted_by_position, ", "), rows_.accepted, rows_.rejected);
  }
  return {};
}

// Drafts are accepted as far as they equal what was drawn, and no further.
base::Status ShadowCache::check_result(const Entry& entry, std::span<const int32_t> drafts,
                                       const scheduler::StepResult::Sequence& result) {
  const auto num_drafts = static_cast<int32_t>(drafts.size());
  const auto num_drawn = static_cast<int32_t>(result.tokens.size());
  if (num_drafts != entry.num_draft_tokens) {
    return error("request {} drafted {} tokens of {}", entry.request, num_drafts,
                 entry.num_draft_tokens);
  }
  if (entry.draws ? num_drawn < 1 || num_drawn > num_drafts + 1 : num_drawn != 0) {
    return error("request {} drew {} tokens after {} drafts", entry.request, num_drawn, num_drafts);
  }
  for (int32_t i = 0; i < std::min(num_drawn, num_drafts); ++i) {
    const bool equals = result.tokens[static_cast<size_t>(i)] == drafts[static_cast<size_t>(i)];
    const bool was_accepted = i + 1 < num_drawn;
    if (equals == was_accepted) continue;
    return error("request {} {} draft {}, which is {} that was drawn", entry.request,
                 was_accepted ? "accepted" : "rejected", i, equals ? "the token" : "not the one");
  }
  return {};
}

}  // namespace ingot::shadow
