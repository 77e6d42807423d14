#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/draft_acceptance.h"

namespace ingot::scheduler {

// The median of the last few of a series, which single slow steps of a busy host leave alone.
class RecentMedian {
 public:
  static constexpr int32_t kSize = 9;

  void add(double value);
  void clear() { num_added_ = 0; }
  int32_t size() const { return num_added_ < kSize ? num_added_ : kSize; }
  // REQUIRES: size() > 0.
  double value() const;

 private:
  std::array<double, kSize> values_{};
  int32_t num_added_ = 0;  // wraps before it overflows
};

// Finds and keeps the best depth in one situation: steps of about the same batch. What a depth is
// worth is its goodput, the tokens that a sequence can expect over the time that its steps took.
//
// At first it climbs: a few steps of every depth, from 0 upwards until goodput falls clearly.
// Started from a depth that is known to be good in a similar situation, it does not climb. From
// then on there are trials, in which steps of another depth alternate with the usual ones, so that
// whatever else changes hits both alike. A trial's gain, less a little, is added to the evidence
// for that depth, and enough evidence makes it the usual one. Going back to a depth that was left
// takes twice as much, and so on. Trials that change nothing get rarer, and one that was costly is
// not repeated before its loss is a small part of the time since.
class DepthSearch {
 public:
  // REQUIRES: 0 <= start <= max_depth.
  DepthSearch(int32_t max_depth, std::optional<int32_t> start);

  // Of the next step.
  int32_t next_depth() const;
  // The usual depth; while it climbs, what is the best so far.
  int32_t best_depth() const { return depth_; }
  bool is_climbing() const { return climbing_at_.has_value(); }

  // What a step took for each of its sequences, and how often drafts were computed in it, by
  // position. It need not be of the depth that next_depth() said, but then it teaches less.
  // REQUIRES: 0 <= depth <= max_depth, num_decoding > 0, seconds > 0.
  void observe(int32_t depth, double seconds, int32_t num_decoding,
               std::span<const int32_t> num_drafted, const DraftAcceptance& acceptance);

 private:
  struct Depth {
    RecentMedian seconds;
    double evidence = 0;  // that it is better than depth_
    int32_t num_times_left = 0;
    double not_before_seconds = 0;  // of seconds_, until a costly trial was paid for
    int64_t last_trial = 0;
  };
  struct Trial {
    int32_t depth = 0;
    bool is_promising = false;  // by earlier steps; that is soon seen
    RecentMedian usual;
    RecentMedian tried;
    double tried_seconds = 0;  // in sum
    int32_t num_steps = 0;
  };

  int32_t max_depth() const { return static_cast<int32_t>(depths_.size()) - 1; }
  Depth& at(int32_t depth) { return depths_[static_cast<size_t>(depth)]; }
  const Depth& at(int32_t depth) const { return depths_[static_cast<size_t>(depth)]; }
  double goodput(int32_t depth, double seconds, const DraftAcceptance& acceptance) const;
  double recent_goodput(int32_t depth, const DraftAcceptance& acceptance) const;

  void observe_coverage(int32_t num_decoding, std::span<const int32_t> num_drafted);
  void climb(const DraftAcceptance& acceptance);
  void start_trial_if_due(const DraftAcceptance& acceptance);
  std::optional<int32_t> promising_depth(const DraftAcceptance& acceptance) const;
  std::optional<int32_t> depth_in_turn();
  void start_trial(int32_t depth);
  void continue_trial(int32_t depth, double seconds, const DraftAcceptance& acceptance);
  void end_trial(double gain);
  void switch_to(int32_t depth);

  std::vector<Depth> depths_;     // 0 to max_depth
  std::vector<double> coverage_;  // by position; see DraftAcceptance
  int32_t depth_ = 0;
  double seconds_ = 0;  // that were observed

  std::optional<int32_t> climbing_at_;
  int32_t num_climbing_steps_ = 0;  // at this depth
  double best_goodput_ = 0;         // while it climbs

  std::optional<Trial> trial_;
  std::optional<int32_t> next_trial_;  // the depth, where the last trial suggests one
  int32_t turn_ = 0;                   // where nothing does
  int64_t num_trials_ = 0;
  int32_t interval_steps_;  // between trials that change nothing
  int32_t num_steps_ = 0;   // since the last trial
};

}  // namespace ingot::scheduler
