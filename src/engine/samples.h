#pragma once

#include <span>
#include <vector>

namespace ingot::engine {

// Repeated measurements of one quantity, in the order in which they were taken.
class Samples {
 public:
  void add(double value) { values_.push_back(value); }

  std::span<const double> values() const { return values_; }
  bool empty() const { return values_.empty(); }

  // 0 of none. The median of an even number is the mean of the middle two; quantiles lie on a line
  // between neighbours.
  double median() const { return quantile(0.5); }
  double quantile(double share) const;
  double standard_deviation() const;  // of the values as a sample; 0 of one

  // Of amount / value for every value: rates of durations.
  Samples rates(double amount) const;

 private:
  std::vector<double> values_;
};

}  // namespace ingot::engine
