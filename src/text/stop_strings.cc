#include "text/stop_strings.h"

#include "base/check.h"

namespace ingot::text {

StopStrings::StopStrings(std::span<const std::string> strings) : nodes_(1) {
  root_children_.fill(kNone);
  size_t num_bytes = 0;
  for (const std::string& string : strings) {
    CHECK(!string.empty());
    num_bytes += string.size();
    CHECK(num_bytes < size_t{1} << 30);
    insert(string, static_cast<int32_t>(sizes_.size()));
    sizes_.push_back(string.size());
  }
  link();
}

void StopStrings::insert(std::string_view string, int32_t index) {
  int32_t node = kRoot;
  for (const char c : string) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t after = child(node, byte);
    if (after == kNone) {
      after = static_cast<int32_t>(nodes_.size());
      int32_t& slot = node == kRoot ? root_children_[byte] : nodes_[node].first_child;
      const Node added{.next_sibling = slot, .size = nodes_[node].size + 1, .byte = byte};
      slot = after;
      nodes_.push_back(added);
    }
    node = after;
  }
  if (nodes_[node].match == kNone) nodes_[node].match = index;
}

// Nodes in order of their size, so that what a node falls back to is linked before it.
void StopStrings::link() {
  std::vector<int32_t> order;
  order.reserve(nodes_.size());
  for (const int32_t node : root_children_) {
    if (node != kNone) order.push_back(node);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const int32_t at = order[i];
    const Node& fallback = nodes_[nodes_[at].fallback];
    const bool is_leaf = nodes_[at].first_child == kNone;
    nodes_[at].open_size = is_leaf ? fallback.open_size : nodes_[at].size;
    if (nodes_[at].match == kNone) nodes_[at].match = fallback.match;
    for (int32_t n = nodes_[at].first_child; n != kNone; n = nodes_[n].next_sibling) {
      nodes_[n].fallback = next(nodes_[at].fallback, nodes_[n].byte);
      order.push_back(n);
    }
  }
}

int32_t StopStrings::child(int32_t node, uint8_t byte) const {
  if (node == kRoot) return root_children_[byte];
  int32_t candidate = nodes_[node].first_child;
  while (candidate != kNone && nodes_[candidate].byte != byte) {
    candidate = nodes_[candidate].next_sibling;
  }
  return candidate;
}

// The state after one more byte. Each step back makes the state shorter, and a byte makes it longer
// by one at most, which bounds the steps of a whole text.
int32_t StopStrings::next(int32_t node, uint8_t byte) const {
  while (true) {
    const int32_t after = child(node, byte);
    if (after != kNone) return after;
    if (node == kRoot) return kRoot;
    node = nodes_[node].fallback;
  }
}

std::optional<StopMatch> StopStrings::push(std::string_view piece) {
  CHECK(!match_);
  for (const char byte : piece) {
    state_ = next(state_, static_cast<uint8_t>(byte));
    ++num_read_;
    const int32_t index = nodes_[state_].match;
    if (index == kNone) continue;
    match_ = {
        .begin = num_read_ - sizes_[index], .end = num_read_, .index = static_cast<size_t>(index)};
    break;
  }
  return match_;
}

void StopStrings::pass(std::string_view piece) {
  CHECK(!match_);
  for (const char byte : piece) state_ = next(state_, static_cast<uint8_t>(byte));
  num_read_ += piece.size();
}

size_t StopStrings::num_certain() const {
  return match_ ? match_->begin : num_read_ - static_cast<size_t>(nodes_[state_].open_size);
}

}  // namespace ingot::text
