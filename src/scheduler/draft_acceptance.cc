#include "scheduler/draft_acceptance.h"

#include <algorithm>

#include "base/check.h"

namespace ingot::scheduler {
namespace {

constexpr double kMemoryDrafts = 1024;
// Of a position of which nothing is known: hopeful, since hope costs a few steps and doubt would
// never be refuted.
constexpr double kPriorAcceptance = 0.8;
constexpr double kPriorDrafts = 16;

}  // namespace

void DraftAcceptance::observe(int32_t num_decoding, std::span<const int32_t> num_drafted,
                              std::span<const int32_t> num_accepted) {
  CHECK(num_drafted.size() == num_accepted.size());
  double num_drafted_before = num_decoding;
  double num_accepted_before = num_decoding;
  for (size_t i = 0; i < positions_.size(); ++i) {
    const double drafted = i < num_drafted.size() ? num_drafted[i] : 0;
    const double accepted = i < num_drafted.size() ? num_accepted[i] : 0;
    const double tried =
        num_drafted_before > 0 ? num_accepted_before * drafted / num_drafted_before : 0;
    Position& position = positions_[i];
    const double kept = std::max(0.0, 1 - std::max(1.0, tried) / kMemoryDrafts);
    position.num_tried = position.num_tried * kept + tried;
    position.num_accepted = position.num_accepted * kept + std::min(accepted, tried);
    num_drafted_before = drafted;
    num_accepted_before = accepted;
  }
}

double DraftAcceptance::expected_tokens(int32_t depth, std::span<const double> coverage) const {
  const auto num_positions = static_cast<size_t>(depth);
  CHECK(num_positions <= positions_.size() && num_positions <= coverage.size());
  double tokens = 1;
  double reached = 1;
  double acceptance = kPriorAcceptance;
  for (size_t i = 0; i < num_positions; ++i) {
    const Position& position = positions_[i];
    acceptance =
        (position.num_accepted + kPriorDrafts * acceptance) / (position.num_tried + kPriorDrafts);
    reached *= acceptance * coverage[i];
    tokens += reached;
  }
  return tokens;
}

}  // namespace ingot::scheduler
