#include "engine/samples.h"

#include <algorithm>
#include <cmath>

namespace ingot::engine {

double Samples::quantile(double share) const {
  if (values_.empty()) return 0;
  std::vector<double> sorted = values_;
  std::ranges::sort(sorted);
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double Samples::standard_deviation() const {
  if (values_.size() < 2) return 0;
  const auto count = static_cast<double>(values_.size());
  double sum = 0;
  for (const double value : values_) sum += value;
  double squares = 0;
  for (const double value : values_) squares += (value - sum / count) * (value - sum / count);
  return std::sqrt(squares / (count - 1));
}

Samples Samples::rates(double amount) const {
  Samples result;
  for (const double value : values_) result.add(amount / value);
  return result;
}

}  // namespace ingot::engine
