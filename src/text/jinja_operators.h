#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_runtime.h"
#include "text/jinja_syntax.h"
#include "text/template_error.h"
#include "text/template_value.h"

namespace ingot::text {

// Python's operators and its attribute and item access, as Jinja's sandbox has them. Results keep
// which bytes are data.

// bool(value)
bool is_true(const TemplateValue& value);

// int(value) of a bool or int; nothing for other types.
std::optional<int64_t> as_integer(const TemplateValue& value);
// float(value) of a bool, int or float.
std::optional<double> as_real(const TemplateValue& value);

// The error that using an undefined value gives.
std::unexpected<TemplateError> undefined_error(const TemplateValue& value);

// a == b
TemplateResult<bool> equal(JinjaRuntime& runtime, const TemplateValue& a, const TemplateValue& b);
// a < b. Errors: kType when the two have no order.
TemplateResult<bool> less(JinjaRuntime& runtime, const TemplateValue& a, const TemplateValue& b);
// needle in haystack
TemplateResult<bool> contains(JinjaRuntime& runtime, const TemplateValue& haystack,
                              const TemplateValue& needle);
// One of the operators that compare.
TemplateResult<bool> compare(JinjaRuntime& runtime, JinjaOperator op, const TemplateValue& a,
                             const TemplateValue& b);

// One of the operators that compute. Integers are of 64 bits here: a result beyond is an error.
TemplateResult<TemplateValue> compute(JinjaRuntime& runtime, JinjaOperator op,
                                      const TemplateValue& a, const TemplateValue& b);
TemplateResult<TemplateValue> negate(const TemplateValue& value);
TemplateResult<TemplateValue> affirm(const TemplateValue& value);

// value.name and value[key]: what is missing is undefined, not an error.
TemplateResult<TemplateValue> get_attribute(JinjaRuntime& runtime, const TemplateValue& value,
                                            std::string_view name);
TemplateResult<TemplateValue> get_item(JinjaRuntime& runtime, const TemplateValue& value,
                                       const TemplateValue& key);
// value[parts[0]:parts[1]:parts[2]], with none where one is left out.
TemplateResult<TemplateValue> get_slice(JinjaRuntime& runtime, const TemplateValue& value,
                                        std::span<const TemplateValue, 3> parts);

// A stable merge sort with an order that may fail: comes_before(a, b) gives TemplateResult<bool>.
template <typename T, typename Before>
TemplateResult<void> stable_sort_by(std::vector<T>& items, const Before& comes_before) {
  std::vector<T> merged;
  for (size_t width = 1; width < items.size(); width *= 2) {
    merged.clear();
    for (size_t begin = 0; begin < items.size(); begin += 2 * width) {
      size_t left = begin;
      size_t right = std::min(begin + width, items.size());
      const size_t left_end = right;
      const size_t right_end = std::min(begin + 2 * width, items.size());
      while (left < left_end && right < right_end) {
        const bool takes_right = TRY(comes_before(items[right], items[left]));
        merged.push_back(std::move(items[takes_right ? right++ : left++]));
      }
      while (left < left_end) merged.push_back(std::move(items[left++]));
      while (right < right_end) merged.push_back(std::move(items[right++]));
    }
    items.swap(merged);
  }
  return {};
}

}  // namespace ingot::text
