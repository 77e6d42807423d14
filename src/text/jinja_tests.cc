#include "text/jinja_tests.h"

#include <algorithm>
#include <array>

#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<bool>;

bool is_integer(const Value& value) { return value.is<int64_t>() || value.is<Value::BigInteger>(); }
bool is_number(const Value& value) {
  return is_integer(value) || value.is<bool>() || value.is<double>();
}
bool is_string(const Value& value) { return value.as_text() != nullptr; }
bool is_mapping(const Value& value) { return value.as_dict() != nullptr; }
bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_escaped(const Value& value) { return value.is<Value::Markup>(); }
template <typename T>
bool is_a(const Value& value) {
  return value.is<T>();
}
template <bool kWanted>
bool is_boolean(const Value& value) {
  const bool* flag = value.get_if<bool>();
  return flag != nullptr && *flag == kWanted;
}
bool is_sequence(const Value& value) {
  return length_of(value).has_value() && !value.is<Value::View>();
}
bool is_iterable(const Value& value) {
  return length_of(value).has_value() || value.is<JinjaIterator*>() || value.is<JinjaLoop*>();
}
bool is_callable(const Value& value) {
  return value.is<JinjaMacro*>() || value.is<JinjaLoop*>() || value.is<const JinjaFunction*>() ||
         value.is<Value::BoundMethod>() || value.is_undefined();
}

template <bool (*kIs)(const Value&)>
Result when(JinjaRuntime&, const Value& value, const BoundArguments&) {
  return kIs(value);
}

template <bool (*kIs)(const PromptText&)>
Result when_text(JinjaRuntime& runtime, const Value& value, const BoundArguments&) {
  return kIs(TRY(to_text(runtime, value)));
}

Result has_remainder(JinjaRuntime& runtime, const Value& value, const Value& by, int64_t wanted) {
  const Value remainder = TRY(compute(runtime, JinjaOperator::kModulo, value, by));
  return equal(runtime, remainder, Value::integer(wanted));
}

Result is_odd(JinjaRuntime& runtime, const Value& value, const BoundArguments&) {
  return has_remainder(runtime, value, Value::integer(2), 1);
}
Result is_even(JinjaRuntime& runtime, const Value& value, const BoundArguments&) {
  return has_remainder(runtime, value, Value::integer(2), 0);
}
Result is_divisible(JinjaRuntime& runtime, const Value& value, const BoundArguments& bound) {
  return has_remainder(runtime, value, *bound[0], 0);
}

template <JinjaOperator kOperator>
Result compares(JinjaRuntime& runtime, const Value& value, const BoundArguments& bound) {
  return compare(runtime, kOperator, value, *bound[0]);
}

// Python's `is`: sure for what exists once and for containers, but whether two equal strings or
// numbers are one object is up to its implementation.
Result is_same(JinjaRuntime& runtime, const Value& value, const BoundArguments& bound) {
  const Value& other = *bound[0];
  const auto is_unsure = [](const Value& v) {
    return is_integer(v) || v.is<double>() || is_string(v) || v.is<Value::Tuple>() ||
           v.is<Value::Range>() || v.is<Value::View>() || v.is<Value::BoundMethod>() ||
           v.is_undefined();
  };
  if (is_unsure(value) && is_unsure(other)) {
    return fail(ErrorKind::kUnsupported, "test 'sameas' of two values of type '{}'",
                type_name(value));
  }
  if (value.is<bool>() != other.is<bool>()) return false;
  if (value.is<Value::List>() && other.is<Value::List>()) {
    return value.as_sequence() == other.as_sequence();
  }
  if (is_mapping(value) && is_mapping(other)) return value.as_dict() == other.as_dict();
  return equal(runtime, value, other);
}

constexpr std::array kTests = {
    JinjaTest{"!=", takes(1, ""), compares<JinjaOperator::kNotEqual>},
    JinjaTest{"<", takes(1, ""), compares<JinjaOperator::kLess>},
    JinjaTest{"<=", takes(1, ""), compares<JinjaOperator::kLessEqual>},
    JinjaTest{"==", takes(1, ""), compares<JinjaOperator::kEqual>},
    JinjaTest{">", takes(1, ""), compares<JinjaOperator::kGreater>},
    JinjaTest{">=", takes(1, ""), compares<JinjaOperator::kGreaterEqual>},
    JinjaTest{"boolean", takes_nothing(), when<is_a<bool>>},
    JinjaTest{"callable", takes_nothing(), when<is_callable>},
    JinjaTest{"defined", takes_nothing(), when<is_defined>},
    JinjaTest{"divisibleby", takes(1, "num"), is_divisible},
    JinjaTest{"eq", takes(1, ""), compares<JinjaOperator::kEqual>},
    JinjaTest{"equalto", takes(1, ""), compares<JinjaOperator::kEqual>},
    JinjaTest{"escaped", takes_nothing(), when<is_escaped>},
    JinjaTest{"even", takes_nothing(), is_even},
    JinjaTest{"false", takes_nothing(), when<is_boolean<false>>},
    JinjaTest{"float", takes_nothing(), when<is_a<double>>},
    JinjaTest{"ge", takes(1, ""), compares<JinjaOperator::kGreaterEqual>},
    JinjaTest{"greaterthan", takes(1, ""), compares<JinjaOperator::kGreater>},
    JinjaTest{"gt", takes(1, ""), compares<JinjaOperator::kGreater>},
    JinjaTest{"in", takes(1, "seq"), compares<JinjaOperator::kIn>},
    JinjaTest{"integer", takes_nothing(), when<is_integer>},
    JinjaTest{"iterable", takes_nothing(), when<is_iterable>},
    JinjaTest{"le", takes(1, ""), compares<JinjaOperator::kLessEqual>},
    JinjaTest{"lessthan", takes(1, ""), compares<JinjaOperator::kLess>},
    JinjaTest{"lower", takes_nothing(), when_text<is_lower_text>},
    JinjaTest{"lt", takes(1, ""), compares<JinjaOperator::kLess>},
    JinjaTest{"mapping", takes_nothing(), when<is_mapping>},
    JinjaTest{"ne", takes(1, ""), compares<JinjaOperator::kNotEqual>},
    JinjaTest{"none", takes_nothing(), when<is_none>},
    JinjaTest{"number", takes_nothing(), when<is_number>},
    JinjaTest{"odd", takes_nothing(), is_odd},
    JinjaTest{"sameas", takes(1, "other"), is_same},
    JinjaTest{"sequence", takes_nothing(), when<is_sequence>},
    JinjaTest{"string", takes_nothing(), when<is_string>},
    JinjaTest{"true", takes_nothing(), when<is_boolean<true>>},
    JinjaTest{"undefined", takes_nothing(), when<is_undefined>},
    JinjaTest{"upper", takes_nothing(), when_text<is_upper_text>},
};

}  // namespace

const JinjaTest* find_jinja_test(std::string_view name) {
  const auto test = std::find_if(kTests.begin(), kTests.end(),
                                 [&](const JinjaTest& row) { return row.name == name; });
  return test != kTests.end() ? &*test : nullptr;
}

Result apply_test(JinjaRuntime& runtime, const JinjaTest& test, const Value& value,
                  const JinjaArguments& arguments) {
  const BoundArguments bound =
      TRY(bind_arguments(fmt::format("test '{}'", test.name), test.signature, arguments));
  return test.function(runtime, value, bound);
}

}  // namespace ingot::text
