#include "scheduler/depth_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace ingot::scheduler {
namespace {

// Steps of a depth that make a median: where the outcome is clear, likely to be clear, or not.
constexpr int32_t kSamplesMin = 3;
constexpr int32_t kSamples = 5;
constexpr int32_t kSamplesMax = RecentMedian::kSize;
constexpr int32_t kTrialStepsMax = 4 * kSamplesMax;

constexpr int32_t kIntervalStepsMin = 16;
constexpr int32_t kIntervalStepsMax = 2048;

// Gains and losses of two equal depths cancel out; what is taken from each gain lets the evidence
// for an equal one die down, and so one that is better by less than this is never switched to.
constexpr double kGainWithoutMeaning = 0.025;
// The more, the longer nothing has changed: then there are many trials to be wrong by chance.
constexpr double kEvidenceInSearch = 0.06;
constexpr double kEvidenceAtRest = 0.2;
constexpr int32_t kIntervalStepsAtRest = 512;
constexpr int32_t kDoublingsMax = 4;
// Worth another trial soon.
constexpr double kClearGain = 0.05;
// Cannot be chance, after kSamples steps and after kSamplesMin.
constexpr double kLargeGain = 0.15;
constexpr double kDecisiveGain = 1;
constexpr double kDecisiveLoss = -0.5;

// While it climbs: goodput that is this much below the best says that more depth will not help.
constexpr double kStillClimbing = 0.85;
// The part of the time that costly trials of one depth may lose.
constexpr double kLossShareMax = 0.005;
// One step of many tells little of how the next one will be cut.
constexpr double kCoverageWeight = 1.0 / 16;

}  // namespace

void RecentMedian::add(double value) {
  values_[static_cast<size_t>(num_added_ % kSize)] = value;
  // Full stays full: from twice the size back to once.
  num_added_ = num_added_ + 1 < 2 * kSize ? num_added_ + 1 : kSize;
}

double RecentMedian::value() const {
  CHECK(num_added_ > 0);
  std::array<double, kSize> sorted = values_;
  const auto end = sorted.begin() + size();
  const auto middle = sorted.begin() + size() / 2;
  std::nth_element(sorted.begin(), middle, end);
  if (size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(sorted.begin(), middle)) / 2;
}

DepthSearch::DepthSearch(int32_t max_depth, std::optional<int32_t> start)
    : depths_(static_cast<size_t>(max_depth) + 1),
      coverage_(static_cast<size_t>(max_depth), 1.0),
      interval_steps_(kIntervalStepsMin) {
  CHECK(max_depth >= 0);
  CHECK(!start || (*start >= 0 && *start <= max_depth));
  if (start) {
    depth_ = *start;
  } else {
    climbing_at_ = 0;
  }
}

int32_t DepthSearch::next_depth() const {
  if (climbing_at_) return *climbing_at_;
  if (trial_ && trial_->num_steps % 2 == 0) return trial_->depth;
  return depth_;
}

void DepthSearch::observe(int32_t depth, double seconds, int32_t num_decoding,
                          std::span<const int32_t> num_drafted, const DraftAcceptance& acceptance) {
  CHECK(depth >= 0 && depth <= max_depth() && num_decoding > 0 && seconds > 0);
  observe_coverage(num_decoding, num_drafted);
  at(depth).seconds.add(seconds);
  seconds_ += seconds;
  if (climbing_at_) {
    climb(acceptance);
  } else if (trial_) {
    continue_trial(depth, seconds, acceptance);
  } else {
    num_steps_ = std::min(num_steps_ + 1, kIntervalStepsMax);
  }
  if (!climbing_at_ && !trial_) start_trial_if_due(acceptance);
}

void DepthSearch::observe_coverage(int32_t num_decoding, std::span<const int32_t> num_drafted) {
  double num_before = num_decoding;
  for (size_t i = 0; i < std::min(coverage_.size(), num_drafted.size()); ++i) {
    if (num_before == 0) return;
    const double share = std::min(1.0, num_drafted[i] / num_before);
    coverage_[i] += (share - coverage_[i]) * kCoverageWeight;
    num_before = num_drafted[i];
  }
}

double DepthSearch::goodput(int32_t depth, double seconds,
                            const DraftAcceptance& acceptance) const {
  return acceptance.expected_tokens(depth, coverage_) / seconds;
}

double DepthSearch::recent_goodput(int32_t depth, const DraftAcceptance& acceptance) const {
  return goodput(depth, at(depth).seconds.value(), acceptance);
}

void DepthSearch::climb(const DraftAcceptance& acceptance) {
  const int32_t depth = *climbing_at_;
  const int32_t num_samples = at(depth).seconds.size();
  ++num_climbing_steps_;
  if (num_samples < kSamplesMin && num_climbing_steps_ < kTrialStepsMax) return;
  // None at all, where its steps were always cut to fewer drafts.
  const double reached = num_samples > 0 ? recent_goodput(depth, acceptance) : 0;
  const bool is_hopeless = reached < best_goodput_ * (1 + kDecisiveLoss);
  if (num_samples < kSamples && num_climbing_steps_ < kTrialStepsMax && !is_hopeless) return;

  if (reached > best_goodput_) {
    best_goodput_ = reached;
    depth_ = depth;
  }
  num_climbing_steps_ = 0;
  climbing_at_ = depth + 1;
  if (depth == max_depth() || reached < kStillClimbing * best_goodput_) climbing_at_.reset();
}

void DepthSearch::start_trial_if_due(const DraftAcceptance& acceptance) {
  if (max_depth() == 0 || at(depth_).seconds.size() < kSamplesMin) return;
  if (const auto depth = promising_depth(acceptance)) {
    start_trial(*depth);
    trial_->is_promising = true;
    return;
  }
  if (num_steps_ < (next_trial_ ? kIntervalStepsMin : interval_steps_)) return;
  const auto depth = next_trial_ ? std::exchange(next_trial_, std::nullopt) : depth_in_turn();
  if (depth) {
    start_trial(*depth);
  } else {
    num_steps_ = 0;
  }
}

// By what was measured some time ago: a reason for a trial, not for a switch.
std::optional<int32_t> DepthSearch::promising_depth(const DraftAcceptance& acceptance) const {
  const double usual = recent_goodput(depth_, acceptance);
  std::optional<int32_t> best;
  double best_goodput = usual * (1 + (num_steps_ < kIntervalStepsMin ? kDecisiveGain : kLargeGain));
  for (int32_t depth = 0; depth <= max_depth(); ++depth) {
    if (depth == depth_ || at(depth).seconds.size() < kSamplesMin) continue;
    const double reached = recent_goodput(depth, acceptance);
    if (reached <= best_goodput) continue;
    best_goodput = reached;
    best = depth;
  }
  return best;
}

// The neighbours in turn, and every fourth time the depth that was longest not tried: goodput may
// have more than one peak. None, if the one whose turn it is was too costly lately.
std::optional<int32_t> DepthSearch::depth_in_turn() {
  const int32_t turn = turn_;
  turn_ = (turn_ + 1) % 4;
  int32_t depth = depth_ + (turn % 2 == 0 ? 1 : -1);
  if (depth < 0) depth = depth_ + 1;
  if (depth > max_depth()) depth = depth_ - 1;
  if (turn == 3) {
    for (int32_t other = 0; other <= max_depth(); ++other) {
      if (other != depth_ && at(other).last_trial < at(depth).last_trial) depth = other;
    }
  }
  if (seconds_ < at(depth).not_before_seconds) return std::nullopt;
  return depth;
}

void DepthSearch::start_trial(int32_t depth) {
  trial_ = Trial{.depth = depth, .usual = {}, .tried = {}};
  at(depth).last_trial = ++num_trials_;
  at(depth).seconds.clear();  // what is old would only blur it
  next_trial_.reset();
  num_steps_ = 0;
}

void DepthSearch::continue_trial(int32_t depth, double seconds, const DraftAcceptance& acceptance) {
  Trial& trial = *trial_;
  ++trial.num_steps;
  if (depth == trial.depth) {
    trial.tried.add(seconds);
    trial.tried_seconds += seconds;
  } else if (depth == depth_) {
    trial.usual.add(seconds);
  }
  const int32_t num_samples = std::min(trial.usual.size(), trial.tried.size());
  const bool is_over = num_samples >= kSamplesMax || trial.num_steps >= kTrialStepsMax;
  if (num_samples < kSamplesMin) {
    // Nothing was learned, since steps came out with another depth.
    if (is_over) end_trial(kDecisiveLoss);
    return;
  }
  const double gain = goodput(trial.depth, trial.tried.value(), acceptance) /
                          goodput(depth_, trial.usual.value(), acceptance) -
                      1;
  const bool is_large = num_samples >= kSamples && std::abs(gain) > kLargeGain;
  const bool is_decided = gain > kDecisiveGain || gain < kDecisiveLoss;
  const bool is_disappointing = trial.is_promising && gain < kClearGain;
  if (is_over || is_large || is_decided || is_disappointing) end_trial(gain);
}

void DepthSearch::end_trial(double gain) {
  const int32_t tried = trial_->depth;
  Depth& depth = at(tried);
  if (gain < 0) {
    depth.not_before_seconds = seconds_ - gain * trial_->tried_seconds / kLossShareMax;
  }
  trial_.reset();
  depth.evidence = std::max(0.0, depth.evidence + gain - kGainWithoutMeaning);
  const int32_t doublings = std::min(depth.num_times_left, kDoublingsMax);
  const double enough =
      interval_steps_ < kIntervalStepsAtRest ? kEvidenceInSearch : kEvidenceAtRest;
  if (depth.evidence > enough * (1 << doublings)) return switch_to(tried);
  if (gain >= kClearGain) {
    next_trial_ = tried;
  } else {
    interval_steps_ = std::min(2 * interval_steps_, kIntervalStepsMax);
  }
}

void DepthSearch::switch_to(int32_t depth) {
  const int32_t beyond = depth + (depth > depth_ ? 1 : -1);
  ++at(depth_).num_times_left;
  for (Depth& each : depths_) each.evidence = 0;
  depth_ = depth;
  // Where it goes back and forth, there is little to be won.
  const int32_t doublings = std::min(at(depth).num_times_left, kDoublingsMax);
  interval_steps_ = std::min(kIntervalStepsMin << (2 * doublings), kIntervalStepsMax);
  // Where it got better, it may get better still.
  if (beyond < 0 || beyond > max_depth() || seconds_ < at(beyond).not_before_seconds) return;
  next_trial_ = beyond;
  num_steps_ = kIntervalStepsMin;
}

}  // namespace ingot::scheduler
