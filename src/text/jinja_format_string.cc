// Python's two ways to fill in a string: format % values and format.format(values).

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "text/code_points.h"
#include "text/jinja_format.h"
#include "text/jinja_operators.h"
#include "text/jinja_strings.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using Value = TemplateValue;

constexpr int64_t kPrecisionMax = 100;

// How one value is laid out.
struct Layout {
  PromptText fill{.text = " ", .data = {}};
  char align = 0;  // '<', '>', '^', '=' (zeros behind the sign), or by type
  char sign = 0;   // '+' or ' ' for numbers that are not negative
  int64_t width = 0;
  std::optional<int64_t> precision;
  char type = 0;
};

std::unexpected<TemplateError> unsupported(std::string_view what) {
  return fail(ErrorKind::kUnsupported, "{} in a format string", what);
}

TemplateResult<PromptText> laid_out(JinjaRuntime& runtime, const PromptText& text,
                                    const Layout& layout, char default_align) {
  const char align = layout.align != 0 ? layout.align : default_align;
  const Side side = align == '<' ? Side::kEnd : align == '^' ? Side::kBoth : Side::kStart;
  if (align == '^') {  // here, unlike in center(), an odd space goes behind
    const auto length = static_cast<int64_t>(count_code_points(text.text));
    const int64_t before = std::max<int64_t>(layout.width - length, 0) / 2;
    const PromptText half = TRY(padded(runtime, text, length + before, layout.fill, Side::kStart));
    return padded(runtime, half, layout.width, layout.fill, Side::kEnd);
  }
  if (align != '=') return padded(runtime, text, layout.width, layout.fill, side);
  const size_t sign = text.text.find_first_not_of("+- ") == 0 ? 0 : 1;
  PromptTextBuilder out;
  out.append(text, 0, sign);
  out.append(TRY(padded(runtime, slice_of(text, sign, text.text.size()),
                        layout.width - static_cast<int64_t>(sign), layout.fill, Side::kStart)));
  return out.take();
}

TemplateResult<std::string> number_text(const Value& value, const Layout& layout) {
  const auto integer = as_integer(value);
  const auto precision = static_cast<int>(layout.precision.value_or(6));
  switch (layout.type) {
    case 'd':
      return value.is<Value::BigInteger>() ? *value.get_if<Value::BigInteger>()->digits
                                           : std::to_string(*integer);
    case 'x':
    case 'X':
    case 'o': {
      if (!integer || *integer == INT64_MIN) return unsupported("an integer beyond 64 bits");
      const int64_t size = std::abs(*integer);
      const std::string digits = layout.type == 'x'   ? fmt::format("{:x}", size)
                                 : layout.type == 'X' ? fmt::format("{:X}", size)
                                                      : fmt::format("{:o}", size);
      return *integer < 0 ? "-" + digits : digits;
    }
    default:
      break;
  }
  const auto real = as_real(value);
  if (!real) return unsupported("an integer beyond 64 bits");
  switch (layout.type) {
    case 'e':
      return fmt::format("{:.{}e}", *real, precision);
    case 'E':
      return fmt::format("{:.{}E}", *real, precision);
    case 'g':
      return fmt::format("{:.{}g}", *real, precision);
    case 'G':
      return fmt::format("{:.{}G}", *real, precision);
    case 'F':
      return fmt::format("{:.{}F}", *real, precision);
    default:
      return fmt::format("{:.{}f}", *real, precision);
  }
}

TemplateResult<PromptText> number(JinjaRuntime& runtime, const Value& value, const Layout& layout) {
  const std::string digits = TRY(number_text(value, layout));
  PromptText text;
  if (layout.sign != 0 && !digits.starts_with('-')) text.text += layout.sign;
  text.text += digits;
  return laid_out(runtime, text, layout, '>');
}

// text cut to the precision of the layout, in characters.
PromptText cut(const PromptText& text, const Layout& layout) {
  if (!layout.precision) return text;
  size_t at = 0;
  for (int64_t i = 0; i < *layout.precision && at < text.text.size(); ++i) {
    next_code_point(text.text, at);
  }
  return slice_of(text, 0, at);
}

TemplateResult<PromptText> repr_of(JinjaRuntime& runtime, const Value& value) {
  // A list of one prints its item as repr does.
  const PromptText list = TRY(to_text(runtime, Value::list({value})));
  return slice_of(list, 1, list.text.size() - 1);
}

// A run of digits at `at`, which moves behind it; nothing when there is none.
TemplateResult<std::optional<int64_t>> digits_at(std::string_view text, size_t& at) {
  int64_t number = 0;
  const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
  const bool has_digits = at < text.size() && text[at] >= '0' && text[at] <= '9';
  if (!has_digits) return std::optional<int64_t>{};
  if (read.ec != std::errc{}) return unsupported("a number beyond 64 bits");
  at = static_cast<size_t>(read.ptr - text.data());
  return std::optional(number);
}

// format % values, directive by directive.
class PercentFormat {
 public:
  PercentFormat(JinjaRuntime& runtime, const PromptText& format, const Value& values)
      : runtime_(runtime), format_(format), text_(format.text), values_(values) {
    const auto* tuple = values.get_if<Value::Tuple>();
    if (tuple != nullptr) {
      arguments_ = tuple->sequence->items;
    } else {
      arguments_ = {values};
    }
    is_mapping_ = tuple == nullptr && values.as_text() == nullptr &&
                  (length_of(values).has_value() && !values.is<Value::View>());
  }

  TemplateResult<PromptText> run() {
    size_t kept = 0;
    for (size_t percent = text_.find('%'); percent != text_.npos; percent = text_.find('%', at_)) {
      out_.append(format_, kept, percent);
      at_ = percent + 1;
      TRY(directive());
      kept = at_;
    }
    out_.append(format_, kept, text_.size());
    TRY(runtime_.spend_text(out_.size_bytes()));
    if (next_ < arguments_.size() && !is_mapping_) {
      return fail(ErrorKind::kType, "not all arguments converted during string formatting");
    }
    return out_.take();
  }

 private:
  TemplateResult<Value> argument() {
    if (next_ < arguments_.size()) return arguments_[next_++];
    return fail(ErrorKind::kType, "not enough arguments for format string");
  }

  // The value of a (name); nothing when there is no name.
  TemplateResult<std::optional<Value>> named() {
    if (at_ >= text_.size() || text_[at_] != '(') return std::optional<Value>{};
    const size_t end = text_.find(')', at_);
    if (end == text_.npos) return fail(ErrorKind::kValue, "incomplete format key");
    const std::string_view name = text_.substr(at_ + 1, end - at_ - 1);
    if (name.contains('(')) return unsupported("parentheses within a name");
    at_ = end + 1;
    const TemplateDict* dict = values_.as_dict();
    if (dict == nullptr) return fail(ErrorKind::kType, "format requires a mapping");
    const Value* value = dict->find(name);
    if (value == nullptr) return fail(ErrorKind::kValue, "no key '{}' for a format string", name);
    next_ = arguments_.size();
    return std::optional(*value);
  }

  TemplateResult<void> directive() {
    const std::optional<Value> by_name = TRY(named());
    Layout layout;
    bool has_zero = false;
    for (; at_ < text_.size() && std::string_view("-+ 0#").contains(text_[at_]); ++at_) {
      const char flag = text_[at_];
      if (flag == '#') return unsupported("the flag '#'");
      if (flag == '-') layout.align = '<';
      if (flag == '0') has_zero = true;
      if (flag == '+' || (flag == ' ' && layout.sign == 0)) layout.sign = flag;
    }
    layout.width = TRY(digits_at(text_, at_))
    .value_or(0);
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      layout.precision = TRY(digits_at(text_, at_))
      .value_or(0);
    }
    if (at_ == text_.size()) return fail(ErrorKind::kValue, "incomplete format");
    layout.type = text_[at_++];
    if (layout.type == '*') return unsupported("a width given by an argument");
    if (layout.type == '%') {
      out_.append("%", Origin::kTemplate);
      return {};
    }
    const Value value = by_name ? *by_name : TRY(argument());
    if (layout.type == 's' || layout.type == 'r') return append_text_of(value, layout);
    if (has_zero && layout.align == 0) {
      layout.align = '=';
      layout.fill.text = "0";
    }
    return append_number(value, layout);
  }

  TemplateResult<void> append_text_of(const Value& value, Layout layout) {
    const bool is_repr = layout.type == 'r';
    const PromptText text = TRY(is_repr ? repr_of(runtime_, value) : to_text(runtime_, value));
    out_.append(TRY(laid_out(runtime_, cut(text, layout), layout, '>')));
    return {};
  }

  TemplateResult<void> append_number(Value value, Layout layout) {
    if (!std::string_view("diuxXoeEfFgG").contains(layout.type)) {
      return fail(ErrorKind::kUnsupported, "'%{}' in a format string", layout.type);
    }
    if (value.is_undefined()) return undefined_error(value);
    const bool is_integral = std::string_view("diuxXo").contains(layout.type);
    const bool is_decimal = std::string_view("diu").contains(layout.type);
    if (is_integral && layout.precision) return unsupported("the precision of an integer");
    if (layout.precision.value_or(0) > kPrecisionMax) return unsupported("a precision over 100");
    if (is_decimal) {
      layout.type = 'd';
      if (const double* real = value.get_if<double>()) {
        if (!(std::fabs(*real) < 9e18)) return unsupported("an integer beyond 64 bits");
        value = Value::integer(static_cast<int64_t>(*real));
      }
    }
    const bool is_big = value.is<Value::BigInteger>();
    const bool fits = is_integral ? as_integer(value).has_value() : as_real(value).has_value();
    if (!fits && !is_big) {
      return fail(ErrorKind::kType, "%{} format: a number is required, not {}", layout.type,
                  type_name(value));
    }
    out_.append(TRY(number(runtime_, value, layout)));
    return {};
  }

  JinjaRuntime& runtime_;
  const PromptText& format_;
  std::string_view text_;
  const Value& values_;
  TemplateList arguments_;
  bool is_mapping_ = false;
  size_t next_ = 0;
  size_t at_ = 0;
  PromptTextBuilder out_;
};

// format.format(arguments), field by field.
class BraceFormat {
 public:
  BraceFormat(JinjaRuntime& runtime, const PromptText& format, const JinjaArguments& arguments)
      : runtime_(runtime), format_(format), text_(format.text), arguments_(arguments) {}

  TemplateResult<PromptText> run() {
    size_t kept = 0;
    for (at_ = text_.find_first_of("{}"); at_ != text_.npos; at_ = text_.find_first_of("{}", at_)) {
      out_.append(format_, kept, at_);
      const char brace = text_[at_++];
      if (at_ < text_.size() && text_[at_] == brace) {
        out_.append(format_, at_, at_ + 1);
        ++at_;
      } else if (brace == '}') {
        return fail(ErrorKind::kValue, "Single '}}' encountered in format string");
      } else {
        TRY(field());
      }
      kept = at_;
    }
    out_.append(format_, kept, text_.size());
    TRY(runtime_.spend_text(out_.size_bytes()));
    return out_.take();
  }

 private:
  TemplateResult<void> field() {
    const size_t end = text_.find_first_of("{}", at_);
    if (end == text_.npos) return fail(ErrorKind::kValue, "expected '}}' before end of string");
    if (text_[end] == '{') return unsupported("a field within a field");
    const std::string_view field = text_.substr(at_, end - at_);
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    const size_t layout_begin = std::min(field.find(':', name_end), field.size());
    const std::string_view conversion = field.substr(name_end, layout_begin - name_end);
    const std::string_view layout = field.substr(std::min(layout_begin + 1, field.size()));
    Value value = TRY(lookup(field.substr(0, name_end)));
    if (conversion == "!r") {
      value = Value::text(TRY(repr_of(runtime_, value)));
    } else if (conversion == "!s") {
      value = Value::text(TRY(to_text(runtime_, value)));
    } else if (!conversion.empty()) {
      return unsupported("a conversion other than !s and !r");
    }
    at_ = end + 1;
    if (layout.empty()) return append_text(runtime_, out_, value);
    return append_laid_out(value, layout);
  }

  // "", "0", "name", and behind it any of ".attribute" and "[item]".
  TemplateResult<Value> lookup(std::string_view path) {
    const size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = TRY(argument(path.substr(0, end)));
    for (size_t at = end; at < path.size();) {
      const bool is_item = path[at] == '[';
      const size_t begin = at + 1;
      const size_t stop = is_item ? path.find(']', begin) : path.find_first_of(".[", begin);
      if (is_item && stop == path.npos)
        return fail(ErrorKind::kValue, "Missing ']' in format string");
      const std::string_view part = path.substr(begin, std::min(stop, path.size()) - begin);
      if (part.empty()) return fail(ErrorKind::kValue, "Empty attribute in format string");
      at = is_item ? stop + 1 : std::min(stop, path.size());
      if (is_item && at < path.size() && path[at] != '.' && path[at] != '[') {
        return fail(ErrorKind::kValue, "Only '.' or '[' may follow ']' in format field specifier");
      }
      size_t digits = 0;
      const auto index = TRY(digits_at(part, digits));
      const bool is_index = is_item && index && digits == part.size();
      const Value key = is_index ? Value::integer(*index) : Value::trusted(std::string(part));
      value = TRY(is_item ? get_item(runtime_, value, key) : get_attribute(runtime_, value, part));
    }
    return value;
  }

  TemplateResult<Value> argument(std::string_view name) {
    size_t digits = 0;
    const auto index = TRY(digits_at(name, digits));
    const bool is_number = name.empty() || (index && digits == name.size());
    if (!is_number) {
      for (const auto& [keyword, value] : arguments_.keywords) {
        if (keyword == name) return value;
      }
      return fail(ErrorKind::kValue, "no argument '{}' for a format string", name);
    }
    if (numbering_ != Numbering::kNone && (numbering_ == Numbering::kAutomatic) != name.empty()) {
      return fail(ErrorKind::kValue, "a format string numbers all of its fields or none");
    }
    numbering_ = name.empty() ? Numbering::kAutomatic : Numbering::kManual;
    const size_t place = name.empty() ? next_++ : static_cast<size_t>(*index);
    if (place < arguments_.positional.size()) return arguments_.positional[place];
    return fail(ErrorKind::kValue, "no argument {} for a format string", place);
  }

  TemplateResult<Layout> parse_layout(std::string_view text) {
    Layout layout;
    size_t at = 0;
    constexpr std::string_view kAligns = "<>^=";
    size_t behind_fill = 0;
    next_code_point(text, behind_fill);
    if (behind_fill < text.size() && kAligns.contains(text[behind_fill])) {
      layout.fill.text = text.substr(0, behind_fill);
      layout.align = text[behind_fill];
      at = behind_fill + 1;
    } else if (kAligns.contains(text[0])) {
      layout.align = text[at++];
    }
    if (at < text.size() && (text[at] == '+' || text[at] == ' ')) layout.sign = text[at++];
    if (at < text.size() && text[at] == '0' && layout.align == 0) {
      layout.fill.text = "0";
      layout.align = '=';
      ++at;
    }
    layout.width = TRY(digits_at(text, at))
    .value_or(0);
    if (at < text.size() && text[at] == '.') {
      layout.precision = TRY(digits_at(text, ++at));
      if (!layout.precision) return fail(ErrorKind::kValue, "Format specifier missing precision");
    }
    if (at < text.size()) layout.type = text[at++];
    if (at < text.size()) return unsupported(fmt::format("layout '{}'", text));
    return layout;
  }

  TemplateResult<void> append_laid_out(const Value& value, std::string_view text) {
    Layout layout = TRY(parse_layout(text));
    const auto wrong = [&] {
      return unsupported(fmt::format("layout '{}' for a {}", text, type_name(value)));
    };
    if (value.is<Value::Text>()) {
      const bool is_plain = (layout.type == 0 || layout.type == 's') && layout.sign == 0;
      if (!is_plain || layout.align == '=') return wrong();
      const PromptText laid = TRY(laid_out(runtime_, cut(*value.as_text(), layout), layout, '<'));
      out_.append(laid);
      return {};
    }
    if (value.is<int64_t>()) {
      if (layout.type == 0) layout.type = 'd';
      const bool is_integer = layout.type == 'd' || layout.type == 'x';
      if (is_integer ? layout.precision.has_value() : layout.type != 'f') return wrong();
    } else if (!value.is<double>() || layout.type != 'f') {
      return wrong();
    }
    if (layout.precision.value_or(0) > kPrecisionMax) return wrong();
    out_.append(TRY(number(runtime_, value, layout)));
    return {};
  }

  enum class Numbering { kNone, kAutomatic, kManual };

  JinjaRuntime& runtime_;
  const PromptText& format_;
  std::string_view text_;
  const JinjaArguments& arguments_;
  Numbering numbering_ = Numbering::kNone;
  size_t next_ = 0;
  size_t at_ = 0;
  PromptTextBuilder out_;
};

}  // namespace

TemplateResult<PromptText> percent_format(JinjaRuntime& runtime, const PromptText& format,
                                          const TemplateValue& values) {
  return PercentFormat(runtime, format, values).run();
}

TemplateResult<PromptText> brace_format(JinjaRuntime& runtime, const PromptText& format,
                                        const JinjaArguments& arguments) {
  return BraceFormat(runtime, format, arguments).run();
}

}  // namespace ingot::text
