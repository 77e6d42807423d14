// Python's arithmetic, and what its operators do with texts and lists.

#include <cmath>
#include <limits>

#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;

std::unexpected<TemplateError> too_large() {
  return fail(ErrorKind::kValue, "the result is an integer beyond 64 bits, which is not supported");
}

std::unexpected<TemplateError> by_zero() {
  return fail(ErrorKind::kValue, "division or modulo by zero");
}

std::string_view symbol_of(JinjaOperator op) {
  switch (op) {
    case JinjaOperator::kAdd:
      return "+";
    case JinjaOperator::kSubtract:
      return "-";
    case JinjaOperator::kMultiply:
      return "*";
    case JinjaOperator::kDivide:
      return "/";
    case JinjaOperator::kFloorDivide:
      return "//";
    case JinjaOperator::kModulo:
      return "%";
    default:
      return "**";
  }
}

// The remainder has the sign of the divisor. REQUIRES: b is neither 0 nor -1.
int64_t floor_modulo(int64_t a, int64_t b) {
  const int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

Result integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return by_zero();
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return too_large();
    exponent >>= 1;
    if (exponent == 0) return Value::integer(result);
    if (__builtin_mul_overflow(base, base, &base)) return too_large();
  }
}

Result compute_integers(JinjaOperator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case JinjaOperator::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case JinjaOperator::kSubtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case JinjaOperator::kMultiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case JinjaOperator::kDivide:
      if (b == 0) return by_zero();
      return Value::real(static_cast<double>(static_cast<long double>(a) / b));
    case JinjaOperator::kFloorDivide:
      if (b == 0) return by_zero();
      if (b == -1) {
        overflows = __builtin_sub_overflow(int64_t{0}, a, &result);
      } else {
        result = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      }
      break;
    case JinjaOperator::kModulo:
      if (b == 0) return by_zero();
      result = b == -1 ? 0 : floor_modulo(a, b);
      break;
    default:
      return integer_power(a, b);
  }
  if (overflows) return too_large();
  return Value::integer(result);
}

double real_modulo(double a, double b) {
  const double remainder = std::fmod(a, b);
  if (remainder == 0) return std::copysign(0.0, b);
  return (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

double real_floor_divide(double a, double b) {
  const double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

Result compute_reals(JinjaOperator op, double a, double b) {
  const bool divides = op == JinjaOperator::kDivide || op == JinjaOperator::kFloorDivide ||
                       op == JinjaOperator::kModulo;
  if (divides && b == 0) return by_zero();
  switch (op) {
    case JinjaOperator::kAdd:
      return Value::real(a + b);
    case JinjaOperator::kSubtract:
      return Value::real(a - b);
    case JinjaOperator::kMultiply:
      return Value::real(a * b);
    case JinjaOperator::kDivide:
      return Value::real(a / b);
    case JinjaOperator::kFloorDivide:
      return Value::real(real_floor_divide(a, b));
    case JinjaOperator::kModulo:
      return Value::real(real_modulo(a, b));
    default:
      break;
  }
  if (a == 0 && b < 0) return by_zero();
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && b != std::trunc(b)) {
    return fail(ErrorKind::kUnsupported, "the result is a complex number");
  }
  const double power = std::pow(a, b);
  if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) {
    return fail(ErrorKind::kValue, "the result is too large for a float");
  }
  return Value::real(power);
}

Result add_texts(JinjaRuntime& runtime, const PromptText& a, const PromptText& b) {
  TRY(runtime.spend_text(a.text.size() + b.text.size()));
  PromptTextBuilder out;
  out.append(a);
  out.append(b);
  return Value::text(out.take());
}

Value like(const Value& model, TemplateList items) {
  return model.is<Value::List>() ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Result add_lists(JinjaRuntime& runtime, const Value& a, const Value& b) {
  TemplateList items = *a.as_sequence();
  items.insert(items.end(), b.as_sequence()->begin(), b.as_sequence()->end());
  TRY(runtime.spend_bytes(items.size() * sizeof(Value)));
  return like(a, std::move(items));
}

Result repeat(JinjaRuntime& runtime, const Value& value, int64_t count) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (const PromptText* text = value.as_text()) {
    const uint64_t size = std::max<uint64_t>(text->text.size(), 1);
    TRY(runtime.spend_text(times > RenderLimits::kTextBytesMax ? times : times * size));
    PromptTextBuilder out;
    for (uint64_t i = 0; i < times; ++i) out.append(*text);
    return Value::text(out.take());
  }
  const TemplateList& once = *value.as_sequence();
  const uint64_t size = sizeof(Value) * std::max<uint64_t>(once.size(), 1);
  constexpr uint64_t kTimesMax = uint64_t{1} << 30;  // up to here the product fits
  TRY(runtime.spend_bytes(times > kTimesMax ? times : times * size));
  TemplateList items;
  items.reserve(times * once.size());
  for (uint64_t i = 0; i < times; ++i) items.insert(items.end(), once.begin(), once.end());
  return like(value, std::move(items));
}

std::unexpected<TemplateError> wrong_types(JinjaOperator op, const Value& a, const Value& b) {
  if (a.is<Value::Markup>() || b.is<Value::Markup>()) {
    return fail(ErrorKind::kUnsupported, "'{}' on escaped text; use ~", symbol_of(op));
  }
  if (a.is<Value::BigInteger>() || b.is<Value::BigInteger>()) {
    return fail(ErrorKind::kUnsupported, "'{}' on an integer beyond 64 bits", symbol_of(op));
  }
  return fail(ErrorKind::kType, "unsupported operand types for {}: '{}' and '{}'", symbol_of(op),
              type_name(a), type_name(b));
}

std::unexpected<TemplateError> wrong_sign_type(char sign, const Value& value) {
  return fail(value.is<Value::BigInteger>() ? ErrorKind::kUnsupported : ErrorKind::kType,
              "bad operand type for unary {}: '{}'", sign, type_name(value));
}

}  // namespace

Result compute(JinjaRuntime& runtime, JinjaOperator op, const Value& a, const Value& b) {
  const bool is_format = op == JinjaOperator::kModulo && a.is<Value::Text>();
  if (is_format) return Value::text(TRY(percent_format(runtime, *a.as_text(), b)));
  if (a.is<Value::Markup>() || b.is<Value::Markup>()) return wrong_types(op, a, b);
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  const auto integer = as_integer(a);
  const auto other_integer = as_integer(b);
  if (integer && other_integer) return compute_integers(op, *integer, *other_integer);
  const auto real = as_real(a);
  const auto other_real = as_real(b);
  if (real && other_real) return compute_reals(op, *real, *other_real);
  const bool are_texts = a.is<Value::Text>() && b.is<Value::Text>();
  const bool are_lists = (a.is<Value::List>() && b.is<Value::List>()) ||
                         (a.is<Value::Tuple>() && b.is<Value::Tuple>());
  if (op == JinjaOperator::kAdd && are_texts) return add_texts(runtime, *a.as_text(), *b.as_text());
  if (op == JinjaOperator::kAdd && are_lists) return add_lists(runtime, a, b);
  const auto repeats = [](const Value& v) { return v.is<Value::Text>() || v.as_sequence(); };
  if (op == JinjaOperator::kMultiply && repeats(a) && other_integer) {
    return repeat(runtime, a, *other_integer);
  }
  if (op == JinjaOperator::kMultiply && repeats(b) && integer) return repeat(runtime, b, *integer);
  return wrong_types(op, a, b);
}

Result negate(const Value& value) {
  if (value.is_undefined()) return undefined_error(value);
  if (const double* real = value.get_if<double>()) return Value::real(-*real);
  const auto integer = as_integer(value);
  if (!integer) return wrong_sign_type('-', value);
  return compute_integers(JinjaOperator::kSubtract, 0, *integer);
}

Result affirm(const Value& value) {
  if (value.is_undefined()) return undefined_error(value);
  if (value.is<double>() || value.is<Value::BigInteger>()) return value;
  const auto integer = as_integer(value);
  if (!integer) return wrong_sign_type('+', value);
  return Value::integer(*integer);
}

}  // namespace ingot::text
