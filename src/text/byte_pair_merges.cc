#include "text/byte_pair_merges.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace ingot::text {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

BytePairMerges::BytePairMerges(std::span<const MergeRule> rules,
                               const std::array<int32_t, 256>& byte_tokens)
    : byte_tokens_(byte_tokens), rules_(std::bit_ceil(2 * rules.size() + 1)) {
  CHECK(rules.size() < kNoRank);
  for (uint32_t rank = 0; rank < rules.size(); ++rank) {
    const MergeRule& rule = rules[rank];
    const uint64_t pair = pair_of(rule.left, rule.right);
    size_t at = base::splitmix64(pair) & (rules_.size() - 1);
    while (rules_[at].pair != kNoPair && rules_[at].pair != pair) {
      at = (at + 1) & (rules_.size() - 1);
    }
    rules_[at] = {pair, rank, rule.merged};
  }
}

const BytePairMerges::Rule* BytePairMerges::find(int32_t left, int32_t right) const {
  const uint64_t pair = pair_of(left, right);
  size_t at = base::splitmix64(pair) & (rules_.size() - 1);
  for (;; at = (at + 1) & (rules_.size() - 1)) {
    if (rules_[at].pair == pair) return &rules_[at];
    if (rules_[at].pair == kNoPair) return nullptr;
  }
}

void BytePairMerges::encode(std::string_view word, Workspace& workspace,
                            std::vector<int32_t>& ids) const {
  if (word.size() <= kShortWordMax) {
    encode_short(word, ids);
  } else {
    encode_long(word, workspace, ids);
  }
}

// Looks over all pairs for every merge: quadratic, and the fastest for words as texts have them.
void BytePairMerges::encode_short(std::string_view word, std::vector<int32_t>& ids) const {
  std::array<int32_t, kShortWordMax> tokens;
  std::array<uint32_t, kShortWordMax> ranks;  // of the merge of token i with the next one
  std::array<int32_t, kShortWordMax> merged;  // what that gives
  size_t count = word.size();
  const auto rank_pair = [&](size_t i) {
    const Rule* rule = i + 1 < count ? find(tokens[i], tokens[i + 1]) : nullptr;
    ranks[i] = rule != nullptr ? rule->rank : kNoRank;
    merged[i] = rule != nullptr ? rule->merged : -1;
  };
  for (size_t i = 0; i < count; ++i) tokens[i] = byte_tokens_[static_cast<uint8_t>(word[i])];
  for (size_t i = 0; i < count; ++i) rank_pair(i);
  while (count > 1) {
    const auto best = static_cast<size_t>(
        std::min_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count)) -
        ranks.begin());
    if (ranks[best] == kNoRank) break;
    tokens[best] = merged[best];
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      tokens[i] = tokens[i + 1];
      ranks[i] = ranks[i + 1];
      merged[i] = merged[i + 1];
    }
    rank_pair(best);
    if (best > 0) rank_pair(best - 1);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

// Queues the merge of a symbol with the next one, if a rule has it.
void BytePairMerges::consider(uint32_t left, Workspace& workspace) const {
  const Workspace::Symbol& symbol = workspace.symbols[left];
  if (symbol.next == Workspace::kNone) return;
  const int32_t right_token = workspace.symbols[symbol.next].token;
  const Rule* rule = find(symbol.token, right_token);
  if (rule == nullptr) return;
  workspace.queue.push_back({rule->rank, left, symbol.token, right_token});
  std::ranges::push_heap(workspace.queue, Workspace::Later{});
}

void BytePairMerges::encode_long(std::string_view word, Workspace& workspace,
                                 std::vector<int32_t>& ids) const {
  using Symbol = Workspace::Symbol;
  auto& [symbols, queue] = workspace;
  CHECK(word.size() < static_cast<size_t>(INT32_MAX));
  const auto count = static_cast<uint32_t>(word.size());
  symbols.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i] = {.token = byte_tokens_[static_cast<uint8_t>(word[i])],
                  .previous = i > 0 ? i - 1 : Workspace::kNone,
                  .next = i + 1 < count ? i + 1 : Workspace::kNone};
  }
  queue.clear();
  for (uint32_t i = 0; i < count; ++i) consider(i, workspace);
  while (!queue.empty()) {
    std::ranges::pop_heap(queue, Workspace::Later{});
    const Workspace::Candidate candidate = queue.back();
    queue.pop_back();
    Symbol& left = symbols[candidate.left];
    if (left.token != candidate.left_token || left.next == Workspace::kNone) continue;
    Symbol& right = symbols[left.next];
    if (right.token != candidate.right_token) continue;
    left.token = find(candidate.left_token, candidate.right_token)->merged;
    left.next = right.next;
    right.token = -1;
    if (left.next != Workspace::kNone) symbols[left.next].previous = candidate.left;
    consider(candidate.left, workspace);
    if (left.previous != Workspace::kNone) consider(left.previous, workspace);
  }
  for (uint32_t i = 0; i != Workspace::kNone; i = symbols[i].next) ids.push_back(symbols[i].token);
}

}  // namespace ingot::text
