#include "text/jinja_filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "text/code_points.h"
#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"
#include "text/prompt_text_builder.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;
using Result = TemplateResult<TemplateValue>;

bool flag_of(const std::optional<Value>& argument) { return argument && is_true(*argument); }

TemplateResult<int64_t> integer_of(const std::optional<Value>& argument, int64_t otherwise) {
  if (!argument) return otherwise;
  const auto integer = as_integer(*argument);
  if (!integer) return fail(ErrorKind::kType, "an integer is needed, not {}", type_name(*argument));
  return *integer;
}

Result default_value(JinjaRuntime&, const Value& value, const JinjaArguments&,
                     BoundArguments& bound) {
  const bool is_missing = value.is_undefined() || (flag_of(bound[1]) && !is_true(value));
  return is_missing ? bound[0].value_or(Value::trusted("")) : value;
}

template <PromptText (*kMap)(const PromptText&)>
Result map_text(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  if (value.is<Value::Markup>()) {
    return fail(ErrorKind::kUnsupported, "this filter on escaped text");
  }
  const PromptText text = TRY(to_text(runtime, value));
  TRY(runtime.spend_text(text.text.size()));
  return Value::text(kMap(text));
}

Result trim(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
            BoundArguments& bound) {
  const bool has_chars = bound[0] && !bound[0]->is_none();
  const PromptText* chars = has_chars ? bound[0]->as_text() : nullptr;
  if (has_chars && chars == nullptr) {
    return fail(ErrorKind::kType, "strip arg must be None or str, not {}", type_name(*bound[0]));
  }
  PromptText trimmed = stripped(TRY(to_text(runtime, value)), chars, Side::kBoth);
  if (!value.is<Value::Markup>()) return Value::text(std::move(trimmed));
  return Value::of(Value::Markup{std::make_shared<const PromptText>(std::move(trimmed))});
}

Result string(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  if (value.as_text() != nullptr) return value;
  return Value::text(TRY(to_text(runtime, value)));
}

Result replace(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
               BoundArguments& bound) {
  const PromptText text = TRY(to_text(runtime, value));
  const PromptText old = TRY(to_text(runtime, *bound[0]));
  const PromptText by = TRY(to_text(runtime, *bound[1]));
  const bool has_limit = bound[2] && !bound[2]->is_none();
  const int64_t limit = has_limit ? TRY(integer_of(bound[2], -1)) : -1;
  return Value::text(TRY(replaced(runtime, text, old, by, limit)));
}

Result format(JinjaRuntime& runtime, const Value& value, const JinjaArguments& arguments,
              BoundArguments&) {
  if (value.is<Value::Markup>()) {
    return fail(ErrorKind::kUnsupported, "filter 'format' on escaped text");
  }
  Value values = Value::tuple(arguments.positional);
  if (!arguments.keywords.empty()) {
    if (!arguments.positional.empty()) {
      return fail(ErrorKind::kType, "filter 'format' takes arguments by position or by keyword");
    }
    TemplateDict dict;
    for (const auto& [keyword, argument] : arguments.keywords) dict.set(keyword, argument);
    values = Value::dict(std::move(dict));
  }
  return Value::text(TRY(percent_format(runtime, TRY(to_text(runtime, value)), values)));
}

Result indent(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
              BoundArguments& bound) {
  if (value.is_undefined()) return undefined_error(value);
  if (!value.is<Value::Text>()) {
    return fail(value.is<Value::Markup>() ? ErrorKind::kUnsupported : ErrorKind::kType,
                "filter 'indent' takes a string, not {}", type_name(value));
  }
  PromptText indentation;
  if (bound[0] && bound[0]->as_text() != nullptr) {
    indentation = *bound[0]->as_text();
  } else {
    const int64_t width = std::max<int64_t>(TRY(integer_of(bound[0], 4)), 0);
    TRY(runtime.spend_text(static_cast<uint64_t>(width)));
    indentation.text = std::string(static_cast<size_t>(width), ' ');
  }
  const PromptText& text = *value.as_text();
  const Origin origin = origin_of(text);
  PromptTextBuilder with_end;
  with_end.append(text);
  with_end.append("\n", origin);
  const TemplateList lines = TRY(split_lines(runtime, with_end.take(), false));
  TRY(runtime.spend_text(text.text.size() + lines.size() * (indentation.text.size() + 1)));
  PromptTextBuilder out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const PromptText& line = *lines[i].as_text();
    if (i > 0) out.append("\n", origin);
    const bool is_indented = i == 0 ? flag_of(bound[1]) : flag_of(bound[2]) || !line.text.empty();
    if (is_indented) out.append(indentation);
    out.append(line);
  }
  return Value::text(out.take());
}

Result tojson(JinjaRuntime& runtime, const Value& value, const JinjaArguments&,
              BoundArguments& bound) {
  JsonStyle style;
  style.ensure_ascii = flag_of(bound[0]);
  style.sort_keys = flag_of(bound[3]);
  style.has_indent = bound[1] && !bound[1]->is_none();
  style.item_separator.text = style.has_indent ? "," : ", ";
  style.key_separator.text = ": ";
  if (style.has_indent && bound[1]->as_text() != nullptr) {
    style.indent = *bound[1]->as_text();
  } else if (style.has_indent) {
    const int64_t width = std::max<int64_t>(TRY(integer_of(bound[1], 0)), 0);
    TRY(runtime.spend_text(static_cast<uint64_t>(width)));
    style.indent.text = std::string(static_cast<size_t>(width), ' ');
  }
  if (bound[2] && !bound[2]->is_none()) {
    const TemplateList separators = TRY(collect(runtime, *bound[2]));
    const bool are_texts = separators.size() == 2 && separators[0].as_text() != nullptr &&
                           separators[1].as_text() != nullptr;
    if (!are_texts) return fail(ErrorKind::kType, "separators= takes two strings");
    style.item_separator = *separators[0].as_text();
    style.key_separator = *separators[1].as_text();
  }
  return Value::text(TRY(to_json(runtime, value, style)));
}

Value markup(PromptText text) {
  return Value::of(Value::Markup{std::make_shared<const PromptText>(std::move(text))});
}

template <bool kAgain>
Result escape(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  if (value.is<Value::Markup>() && !kAgain) return value;
  const PromptText text = TRY(to_text(runtime, value));
  PromptTextBuilder out;
  OriginCursor origins(text);
  for (size_t at = 0; at < text.text.size(); ++at) {
    const char c = text.text[at];
    const std::string_view written = c == '&'    ? "&amp;"
                                     : c == '<'  ? "&lt;"
                                     : c == '>'  ? "&gt;"
                                     : c == '"'  ? "&#34;"
                                     : c == '\'' ? "&#39;"
                                                 : std::string_view(&c, 1);
    out.append(written, origins.at(at));
  }
  TRY(runtime.spend_text(out.size_bytes()));
  return markup(out.take());
}

Result safe(JinjaRuntime& runtime, const Value& value, const JinjaArguments&, BoundArguments&) {
  return markup(TRY(to_text(runtime, value)));
}

Result abs(JinjaRuntime&, const Value& value, const JinjaArguments&, BoundArguments&) {
  if (const double* real = value.get_if<double>()) return Value::real(std::fabs(*real));
  const auto integer = as_integer(value);
  if (!integer) {
    const bool is_big = value.is<Value::BigInteger>();
    return fail(is_big ? ErrorKind::kUnsupported : ErrorKind::kType,
                "bad operand type for abs(): '{}'", type_name(value));
  }
  return *integer < 0 ? negate(value) : Value::integer(*integer);
}

// The digits of a number as Python reads it: white space around it, underscores between digits.
std::optional<std::string> number_text(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return std::nullopt;
    }
  }
  if (digits.starts_with('+')) digits.erase(0, 1);
  const bool has_two_signs = text.starts_with("+-") || text.starts_with("++");
  return digits.empty() || has_two_signs ? std::nullopt : std::optional(digits);
}

std::optional<double> real_of_text(std::string_view text) {
  const auto digits = number_text(text);
  if (!digits || digits->find('(') != std::string::npos) return std::nullopt;
  double value = 0;
  const char* end = digits->data() + digits->size();
  const auto read = std::from_chars(digits->data(), end, value);
  if (read.ptr != end || read.ec == std::errc::invalid_argument) return std::nullopt;
  if (read.ec == std::errc{}) return value;
  const bool is_tiny = digits->find("e-") != std::string::npos ||
                       digits->find("E-") != std::string::npos || digits->starts_with("0.") ||
                       digits->starts_with("-0.");
  const double sign = digits->starts_with('-') ? -1 : 1;
  return sign * (is_tiny ? 0 : HUGE_VAL);
}

std::optional<Value> integer_of_text(std::string_view text) {
  const auto digits = number_text(text);
  if (!digits) return std::nullopt;
  const size_t sign = digits->starts_with('-') ? 1 : 0;
  if (digits->size() == sign ||
      digits->find_first_not_of("0123456789", sign) != std::string::npos) {
    return std::nullopt;
  }
  int64_t value = 0;
  const auto read = std::from_chars(digits->data(), digits->data() + digits->size(), value);
  if (read.ec == std::errc{}) return Value::integer(value);
  const size_t first = digits->find_first_not_of('0', sign);
  return Value::big_integer(digits->substr(0, sign) + digits->substr(first));
}

// int(real); nothing when it is not finite.
std::optional<Value> truncated(double real) {
  if (!std::isfinite(real)) return std::nullopt;
  if (std::fabs(real) < 9e18) return Value::integer(static_cast<int64_t>(real));
  return Value::big_integer(fmt::format("{:.0f}", std::trunc(real)));
}

// Digits of other scripts are numbers in Python.
TemplateResult<void> check_digits(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c >= 0x80 && is_decimal(c)) {
      return fail(ErrorKind::kUnsupported, "a number in digits other than 0 to 9");
    }
  }
  return {};
}

Result to_integer(JinjaRuntime&, const Value& value, const JinjaArguments&, BoundArguments& bound) {
  const Value otherwise = bound[0].value_or(Value::integer(0));
  if (TRY(integer_of(bound[1], 10)) != 10) {
    return fail(ErrorKind::kUnsupported, "filter 'int' with a base other than 10");
  }
  if (value.is_undefined()) return undefined_error(value);
  if (const PromptText* text = value.as_text()) {
    TRY(check_digits(text->text));
    if (auto integer = integer_of_text(text->text)) return *std::move(integer);
    const auto real = real_of_text(text->text);
    return real ? truncated(*real).value_or(otherwise) : otherwise;
  }
  if (value.is<Value::BigInteger>()) return value;
  if (const auto integer = as_integer(value)) return Value::integer(*integer);
  const double* real = value.get_if<double>();
  if (real == nullptr) return otherwise;
  if (std::isinf(*real)) return fail(ErrorKind::kValue, "cannot convert infinity to an integer");
  return truncated(*real).value_or(otherwise);
}

Result to_real(JinjaRuntime&, const Value& value, const JinjaArguments&, BoundArguments& bound) {
  const Value otherwise = bound[0].value_or(Value::real(0));
  if (value.is_undefined()) return undefined_error(value);
  if (const PromptText* text = value.as_text()) {
    TRY(check_digits(text->text));
    const auto real = real_of_text(text->text);
    return real ? Value::real(*real) : otherwise;
  }
  if (value.is<Value::BigInteger>()) {
    return fail(ErrorKind::kUnsupported, "filter 'float' on an integer beyond 64 bits");
  }
  const auto real = as_real(value);
  return real ? Value::real(*real) : otherwise;
}

Result round(JinjaRuntime&, const Value& value, const JinjaArguments&, BoundArguments& bound) {
  constexpr int64_t kPrecisionMax = 15;
  const int64_t precision = TRY(integer_of(bound[0], 0));
  const PromptText* method = bound[1] ? bound[1]->as_text() : nullptr;
  const std::string_view name = method != nullptr ? std::string_view(method->text) : "common";
  if (bound[1] && method == nullptr) return fail(ErrorKind::kType, "method= takes a string");
  if (name != "common" && name != "ceil" && name != "floor") {
    return fail(ErrorKind::kValue, "method must be common, ceil or floor");
  }
  const auto real = as_real(value);
  if (!real) return fail(ErrorKind::kType, "'{}' cannot be rounded", type_name(value));
  if (precision < 0 || precision > kPrecisionMax) {
    return fail(ErrorKind::kUnsupported, "filter 'round' to {} digits", precision);
  }
  if (name == "common") {
    if (const auto integer = as_integer(value)) return Value::integer(*integer);
    if (!std::isfinite(*real)) return value;
    const std::string digits = fmt::format("{:.{}f}", *real, precision);
    double rounded = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
    return Value::real(rounded);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *real * scale;
  if (!std::isfinite(scaled)) return fail(ErrorKind::kValue, "a number that is not finite");
  if (!std::isfinite(scaled)) {
    return fail(ErrorKind::kValue, "cannot round what is not finite to an integer");
  }
  const double whole = name == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  // Python rounds to an integer, which knows no -0.
  return Value::real((whole == 0 ? 0.0 : whole) / scale);
}

constexpr std::array kFilters = {
    JinjaFilter{"abs", takes_nothing(), abs},
    JinjaFilter{"capitalize", takes_nothing(), map_text<capitalized>},
    JinjaFilter{"d", takes(0, "default_value", "boolean"), default_value},
    JinjaFilter{"default", takes(0, "default_value", "boolean"), default_value},
    JinjaFilter{"e", takes_nothing(), escape<false>},
    JinjaFilter{"escape", takes_nothing(), escape<false>},
    JinjaFilter{"float", takes(0, "default"), to_real},
    JinjaFilter{"forceescape", takes_nothing(), escape<true>},
    JinjaFilter{"format", takes_anything(), format},
    JinjaFilter{"indent", takes(0, "width", "first", "blank"), indent},
    JinjaFilter{"int", takes(0, "default", "base"), to_integer},
    JinjaFilter{"lower", takes_nothing(), map_text<lower_of>},
    JinjaFilter{"replace", takes(2, "old", "new", "count"), replace},
    JinjaFilter{"round", takes(0, "precision", "method"), round},
    JinjaFilter{"safe", takes_nothing(), safe},
    JinjaFilter{"string", takes_nothing(), string},
    JinjaFilter{"title", takes_nothing(), map_text<titled_words>},
    JinjaFilter{"tojson", takes(0, "ensure_ascii", "indent", "separators", "sort_keys"), tojson},
    JinjaFilter{"trim", takes(0, "chars"), trim},
    JinjaFilter{"upper", takes_nothing(), map_text<upper_of>},
};

}  // namespace

const JinjaFilter* find_jinja_filter(std::string_view name) {
  const auto filter = std::find_if(kFilters.begin(), kFilters.end(),
                                   [&](const JinjaFilter& row) { return row.name == name; });
  return filter != kFilters.end() ? &*filter : find_list_filter(name);
}

Result apply_filter(JinjaRuntime& runtime, const JinjaFilter& filter, const Value& value,
                    const JinjaArguments& arguments) {
  BoundArguments bound =
      TRY(bind_arguments(fmt::format("filter '{}'", filter.name), filter.signature, arguments));
  return filter.function(runtime, value, arguments, bound);
}

}  // namespace ingot::text
