#include "text/byte_pair_merges.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "base/random.h"

namespace ingot::text {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;
constexpr int32_t kMergedAway = -1;

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

// The rule for a symbol and the next one. Null if there is none, or either is no more.
const BytePairMerges::Rule* BytePairMerges::rule_at(uint32_t left,
                                                    const Workspace& workspace) const {
  const Workspace::Symbol& symbol = workspace.symbols[left];
  if (symbol.token == kMergedAway || symbol.next == Workspace::kNone) return nullptr;
  return find(symbol.token, workspace.symbols[symbol.next].token);
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
  const auto consider = [&](uint32_t left) {
    const Rule* rule = rule_at(left, workspace);
    if (rule != nullptr) queue.push_back(uint64_t{rule->rank} << 32 | left);
    return rule != nullptr;
  };
  const auto enqueue = [&](uint32_t left) {
    if (consider(left)) std::ranges::push_heap(queue, std::greater{});
  };
  queue.clear();
  for (uint32_t i = 0; i < count; ++i) consider(i);
  std::ranges::make_heap(queue, std::greater{});
  while (!queue.empty()) {
    std::ranges::pop_heap(queue, std::greater{});
    const auto rank = static_cast<uint32_t>(queue.back() >> 32);
    const auto index = static_cast<uint32_t>(queue.back());
    queue.pop_back();
    const Rule* rule = rule_at(index, workspace);
    if (rule == nullptr || rule->rank != rank) continue;  // its symbols went into other merges
    Symbol& left = symbols[index];
    Symbol& right = symbols[left.next];
    left.token = rule->merged;
    left.next = right.next;
    right.token = kMergedAway;
    if (left.next != Workspace::kNone) symbols[left.next].previous = index;
    enqueue(index);
    if (left.previous != Workspace::kNone) enqueue(left.previous);
  }
  for (uint32_t i = 0; i != Workspace::kNone; i = symbols[i].next) ids.push_back(symbols[i].token);
}

}  // namespace ingot::text
