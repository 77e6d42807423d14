#include "text/jinja_operators.h"

#include <cmath>

#include "text/jinja_format.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using BigInteger = TemplateValue::BigInteger;
using View = TemplateValue::View;

bool is_number(const TemplateValue& value) {
  return value.is<bool>() || value.is<int64_t>() || value.is<double>();
}

template <typename T>
bool same_object(const TemplateValue& a, const TemplateValue& b) {
  const T* left = a.get_if<T>();
  const T* right = b.get_if<T>();
  return left != nullptr && right != nullptr && *left == *right;
}

// Exact, for an x86 long double holds any 64-bit integer.
long double exact(const TemplateValue& number) {
  if (const double* real = number.get_if<double>()) return *real;
  return static_cast<long double>(*as_integer(number));
}

TemplateResult<bool> equal_lists(JinjaRuntime& runtime, const TemplateList& a,
                                 const TemplateList& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!TRY(equal(runtime, a[i], b[i]))) return false;
  }
  return true;
}

TemplateResult<bool> equal_dicts(JinjaRuntime& runtime, const TemplateDict& a,
                                 const TemplateDict& b, bool with_values) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const TemplateValue* other = b.find(key);
    if (other == nullptr) return false;
    if (with_values && !TRY(equal(runtime, value, *other))) return false;
  }
  return true;
}

TemplateResult<bool> equal_views(JinjaRuntime& runtime, const View& a, const View& b) {
  if (a.part != b.part || a.part == View::Part::kValues) return false;
  return equal_dicts(runtime, *a.dict, *b.dict, a.part == View::Part::kItems);
}

bool equal_objects(const TemplateValue& a, const TemplateValue& b) {
  const auto* range = a.get_if<TemplateValue::Range>();
  const auto* other_range = b.get_if<TemplateValue::Range>();
  if (range != nullptr && other_range != nullptr) {
    return range->length == other_range->length &&
           (range->length == 0 || range->start == other_range->start) &&
           (range->length <= 1 || range->step == other_range->step);
  }
  return same_object<JinjaIterator*>(a, b) || same_object<JinjaLoop*>(a, b) ||
         same_object<JinjaMacro*>(a, b) || same_object<JinjaNamespace*>(a, b) ||
         same_object<const JinjaFunction*>(a, b);
}

TemplateResult<bool> less_lists(JinjaRuntime& runtime, const TemplateList& a,
                                const TemplateList& b) {
  const size_t both = std::min(a.size(), b.size());
  for (size_t i = 0; i < both; ++i) {
    if (!TRY(equal(runtime, a[i], b[i]))) return less(runtime, a[i], b[i]);
  }
  return a.size() < b.size();
}

TemplateResult<bool> list_contains(JinjaRuntime& runtime, const TemplateValue& haystack,
                                   const TemplateValue& needle) {
  JinjaIterator* items = TRY(iterate(runtime, haystack));
  while (const auto item = TRY(next_item(runtime, *items))) {
    if (TRY(equal(runtime, *item, needle))) return true;
  }
  return false;
}

}  // namespace

bool is_true(const TemplateValue& value) {
  if (const bool* flag = value.get_if<bool>()) return *flag;
  if (const int64_t* integer = value.get_if<int64_t>()) return *integer != 0;
  if (const double* real = value.get_if<double>()) return *real != 0;
  if (value.is_none()) return false;
  if (const PromptText* text = value.as_text()) return !text->text.empty();
  return length_of(value).value_or(1) != 0;
}

std::optional<int64_t> as_integer(const TemplateValue& value) {
  if (const bool* flag = value.get_if<bool>()) return *flag ? 1 : 0;
  const int64_t* integer = value.get_if<int64_t>();
  return integer != nullptr ? std::optional(*integer) : std::nullopt;
}

std::optional<double> as_real(const TemplateValue& value) {
  if (const double* real = value.get_if<double>()) return *real;
  const auto integer = as_integer(value);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

std::unexpected<TemplateError> undefined_error(const TemplateValue& value) {
  const auto* undefined = value.get_if<TemplateValue::Undefined>();
  if (undefined == nullptr || undefined->reason == nullptr) {
    return fail(ErrorKind::kUndefined, "an undefined value is used");
  }
  return fail(undefined->reason->kind, "{}", undefined->reason->message);
}

TemplateResult<bool> equal(JinjaRuntime& runtime, const TemplateValue& a, const TemplateValue& b) {
  TRY(runtime.spend_steps(1));
  if (is_number(a) && is_number(b)) return exact(a) == exact(b);
  const PromptText* text = a.as_text();
  const PromptText* other_text = b.as_text();
  if (text != nullptr && other_text != nullptr) {
    TRY(runtime.spend_steps(text->text.size() / 64));
    return text->text == other_text->text;
  }
  const auto* list = a.get_if<TemplateValue::List>();
  const auto* tuple = a.get_if<TemplateValue::Tuple>();
  if ((list != nullptr && b.is<TemplateValue::List>()) ||
      (tuple != nullptr && b.is<TemplateValue::Tuple>())) {
    return equal_lists(runtime, *a.as_sequence(), *b.as_sequence());
  }
  if (a.as_dict() != nullptr && b.as_dict() != nullptr) {
    return equal_dicts(runtime, *a.as_dict(), *b.as_dict(), true);
  }
  const View* view = a.get_if<View>();
  const View* other_view = b.get_if<View>();
  if (view != nullptr && other_view != nullptr) return equal_views(runtime, *view, *other_view);
  const BigInteger* big = a.get_if<BigInteger>();
  const BigInteger* other_big = b.get_if<BigInteger>();
  if (big != nullptr && other_big != nullptr) return *big->digits == *other_big->digits;
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined()) ||
         equal_objects(a, b);
}

TemplateResult<bool> less(JinjaRuntime& runtime, const TemplateValue& a, const TemplateValue& b) {
  TRY(runtime.spend_steps(1));
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (is_number(a) && is_number(b)) return exact(a) < exact(b);
  const PromptText* text = a.as_text();
  const PromptText* other_text = b.as_text();
  if (text != nullptr && other_text != nullptr) {
    TRY(runtime.spend_steps(text->text.size() / 64));
    return text->text < other_text->text;  // in UTF-8 the order of bytes is that of code points
  }
  const bool are_lists = a.is<TemplateValue::List>() && b.is<TemplateValue::List>();
  if (are_lists || (a.is<TemplateValue::Tuple>() && b.is<TemplateValue::Tuple>())) {
    return less_lists(runtime, *a.as_sequence(), *b.as_sequence());
  }
  if (a.is<BigInteger>() || b.is<BigInteger>()) {
    return fail(ErrorKind::kUnsupported, "integers beyond 64 bits are not compared");
  }
  return fail(ErrorKind::kType, "no order between instances of '{}' and '{}'", type_name(a),
              type_name(b));
}

TemplateResult<bool> contains(JinjaRuntime& runtime, const TemplateValue& haystack,
                              const TemplateValue& needle) {
  if (const PromptText* text = haystack.as_text()) {
    const PromptText* part = needle.as_text();
    if (part == nullptr) {
      return fail(ErrorKind::kType, "'in <string>' requires string as left operand, not {}",
                  type_name(needle));
    }
    TRY(runtime.spend_steps(text->text.size() / 64));
    return text->text.find(part->text) != std::string::npos;
  }
  const View* view = haystack.get_if<View>();
  const bool is_keys = view != nullptr && view->part == View::Part::kKeys;
  const TemplateDict* dict = is_keys ? view->dict.get() : haystack.as_dict();
  if (dict == nullptr) return list_contains(runtime, haystack, needle);
  if (TemplateDict::accepts(needle)) return dict->find(needle) != nullptr;
  if (!needle.is_hashable()) {
    return fail(ErrorKind::kType, "unhashable type: '{}'", type_name(needle));
  }
  return false;  // what is no key here is in no dict
}

TemplateResult<bool> compare(JinjaRuntime& runtime, JinjaOperator op, const TemplateValue& a,
                             const TemplateValue& b) {
  switch (op) {
    case JinjaOperator::kEqual:
      return equal(runtime, a, b);
    case JinjaOperator::kNotEqual:
      return !TRY(equal(runtime, a, b));
    case JinjaOperator::kLess:
      return less(runtime, a, b);
    case JinjaOperator::kGreater:
      return less(runtime, b, a);
    case JinjaOperator::kLessEqual:
    case JinjaOperator::kGreaterEqual: {
      const bool is_less = TRY(less(runtime, op == JinjaOperator::kLessEqual ? a : b,
                                    op == JinjaOperator::kLessEqual ? b : a));
      return is_less || TRY(equal(runtime, a, b));
    }
    case JinjaOperator::kIn:
      return contains(runtime, b, a);
    default:
      return !TRY(contains(runtime, b, a));
  }
}

}  // namespace ingot::text
