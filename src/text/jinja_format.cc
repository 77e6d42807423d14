#include "text/jinja_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "text/code_points.h"
#include "text/jinja_operators.h"

namespace ingot::text {
namespace {

using ErrorKind = TemplateError::Kind;
using View = TemplateValue::View;

// Before `bytes` more are appended to out.
TemplateResult<void> make_room(JinjaRuntime& runtime, const PromptTextBuilder& out, size_t bytes) {
  const size_t size_bytes = out.size_bytes() + bytes;
  if (size_bytes > RenderLimits::kTextBytesMax) return runtime.spend_text(size_bytes);
  return runtime.spend_bytes(bytes);
}

TemplateResult<void> append_word(JinjaRuntime& runtime, PromptTextBuilder& out,
                                 std::string_view word) {
  TRY(make_room(runtime, out, word.size()));
  out.append(word, Origin::kTemplate);
  return {};
}

// A text with some of its code points written otherwise. escape() is given each code point and
// returns what stands for it, or nothing to keep it; what it returns is as much data as that was.
template <typename Escape>
void append_escaped(PromptTextBuilder& out, const PromptText& text, const Escape& escape) {
  OriginCursor origins(text);
  size_t kept = 0;
  for (size_t at = 0; at < text.text.size();) {
    const size_t begin = at;
    const std::string written = escape(next_code_point(text.text, at));
    if (written.empty()) continue;
    out.append(text, kept, begin);
    out.append(written, origins.at(begin));
    kept = at;
  }
  out.append(text, kept, text.text.size());
}

// Python's repr of a string: single quotes unless that takes escapes which double quotes do not.
void append_string_repr(PromptTextBuilder& out, const PromptText& text) {
  const bool has_single = text.text.find('\'') != std::string::npos;
  const bool has_double = text.text.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out.append({&quote, 1}, Origin::kTemplate);
  append_escaped(out, text, [&](char32_t c) -> std::string {
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    if (c == '\\') return "\\\\";
    if (c == static_cast<char32_t>(quote)) return fmt::format("\\{}", quote);
    if (is_printable(c)) return {};
    const auto code = static_cast<uint32_t>(c);
    if (code < 0x100) return fmt::format("\\x{:02x}", code);
    return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
  });
  out.append({&quote, 1}, Origin::kTemplate);
}

TemplateResult<void> append_repr(JinjaRuntime& runtime, PromptTextBuilder& out,
                                 const TemplateValue& value);

TemplateResult<void> append_repr_of_items(JinjaRuntime& runtime, PromptTextBuilder& out,
                                          const TemplateList& items, std::string_view open,
                                          std::string_view close) {
  TRY(append_word(runtime, out, open));
  std::string_view separator;
  for (const TemplateValue& item : items) {
    TRY(append_word(runtime, out, std::exchange(separator, ", ")));
    TRY(append_repr(runtime, out, item));
  }
  return append_word(runtime, out, close);
}

TemplateResult<void> append_dict_repr(JinjaRuntime& runtime, PromptTextBuilder& out,
                                      const TemplateDict& dict) {
  std::string_view separator = "{";
  for (const auto& [key, value] : dict.entries()) {
    TRY(append_word(runtime, out, std::exchange(separator, ", ")));
    TRY(append_repr(runtime, out, key));
    TRY(append_word(runtime, out, ": "));
    TRY(append_repr(runtime, out, value));
  }
  return append_word(runtime, out, dict.size() == 0 ? "{}" : "}");
}

std::string range_repr(const TemplateValue::Range& range) {
  return range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                         : fmt::format("range({}, {}, {})", range.start, range.stop, range.step);
}

TemplateResult<void> append_view_repr(JinjaRuntime& runtime, PromptTextBuilder& out,
                                      const TemplateValue& view) {
  const TemplateList items = TRY(collect(runtime, view));
  return append_repr_of_items(runtime, out, items, fmt::format("{}([", type_name(view)), "])");
}

TemplateResult<void> append_repr(JinjaRuntime& runtime, PromptTextBuilder& out,
                                 const TemplateValue& value) {
  TRY(runtime.spend_steps(1));
  if (const PromptText* text = value.as_text()) {
    if (value.is<TemplateValue::Markup>()) {
      return fail(ErrorKind::kUnsupported, "escaped text within a printed list or dict");
    }
    TRY(make_room(runtime, out, text->text.size() + 2));
    append_string_repr(out, *text);
    return make_room(runtime, out, 0);
  }
  if (const auto* list = value.get_if<TemplateValue::List>()) {
    return append_repr_of_items(runtime, out, list->sequence->items, "[", "]");
  }
  if (const auto* tuple = value.get_if<TemplateValue::Tuple>()) {
    const TemplateList& items = tuple->sequence->items;
    return append_repr_of_items(runtime, out, items, "(", items.size() == 1 ? ",)" : ")");
  }
  if (const TemplateDict* dict = value.as_dict()) return append_dict_repr(runtime, out, *dict);
  if (value.is<View>()) return append_view_repr(runtime, out, value);
  if (value.is_undefined()) return append_word(runtime, out, "Undefined");
  return append_text(runtime, out, value);
}

// The integers, floats and words that a JSON document and a dict's keys have in common.
std::optional<std::string> json_word(const TemplateValue& value) {
  if (value.is_none()) return "null";
  if (const bool* flag = value.get_if<bool>()) return *flag ? "true" : "false";
  if (const int64_t* integer = value.get_if<int64_t>()) return std::to_string(*integer);
  if (const auto* big = value.get_if<TemplateValue::BigInteger>()) return *big->digits;
  const double* real = value.get_if<double>();
  if (real == nullptr) return std::nullopt;
  if (std::isnan(*real)) return "NaN";
  if (std::isinf(*real)) return *real > 0 ? "Infinity" : "-Infinity";
  return float_repr(*real);
}

std::string json_escape(char32_t c, bool ensure_ascii) {
  constexpr std::string_view kNamed = "\"\\\n\r\t\f\b";
  constexpr std::string_view kLetters = "\"\\nrtfb";
  if (c < 0x80) {
    const size_t named = kNamed.find(static_cast<char>(c));
    if (named != std::string_view::npos) return fmt::format("\\{}", kLetters[named]);
  }
  const auto code = static_cast<uint32_t>(c);
  const bool is_plain = code >= 0x20 && (!ensure_ascii || code < 0x7F);
  if (is_plain) return {};
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  const uint32_t rest = code - 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

class JsonWriter {
 public:
  JsonWriter(JinjaRuntime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  TemplateResult<PromptText> run(const TemplateValue& value) {
    TRY(write(value));
    return out_.take();
  }

 private:
  TemplateResult<void> write(const TemplateValue& value) {
    TRY(runtime_.spend_steps(1));
    if (const PromptText* text = value.as_text()) return write_string(*text);
    if (const auto word = json_word(value)) return append_word(runtime_, out_, *word);
    if (const TemplateList* items = value.as_sequence()) return write_list(*items);
    if (const TemplateDict* dict = value.as_dict()) return write_dict(*dict);
    return fail(ErrorKind::kType, "Object of type {} is not JSON serializable", type_name(value));
  }

  TemplateResult<void> write_string(const PromptText& text) {
    TRY(make_room(runtime_, out_, text.text.size() + 2));
    out_.append("\"", Origin::kTemplate);
    append_escaped(out_, text, [&](char32_t c) { return json_escape(c, style_.ensure_ascii); });
    out_.append("\"", Origin::kTemplate);
    return make_room(runtime_, out_, 0);
  }

  TemplateResult<void> write_piece(const PromptText& piece) {
    TRY(make_room(runtime_, out_, piece.text.size()));
    out_.append(piece);
    return {};
  }

  TemplateResult<void> start_line() {
    if (!style_.has_indent) return {};
    TRY(append_word(runtime_, out_, "\n"));
    for (size_t i = 0; i < level_; ++i) TRY(write_piece(style_.indent));
    return {};
  }

  TemplateResult<void> write_list(const TemplateList& items) {
    if (items.empty()) return append_word(runtime_, out_, "[]");
    TRY(append_word(runtime_, out_, "["));
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) TRY(write_piece(style_.item_separator));
      TRY(start_line());
      TRY(write(items[i]));
    }
    --level_;
    TRY(start_line());
    return append_word(runtime_, out_, "]");
  }

  TemplateResult<void> write_dict(const TemplateDict& dict) {
    if (dict.size() == 0) return append_word(runtime_, out_, "{}");
    std::vector<TemplateDict::Entry> entries = dict.entries();
    if (style_.sort_keys) TRY(sort(entries));
    TRY(append_word(runtime_, out_, "{"));
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) TRY(write_piece(style_.item_separator));
      TRY(start_line());
      TRY(write_key(entries[i].key));
      TRY(write_piece(style_.key_separator));
      TRY(write(entries[i].value));
    }
    --level_;
    TRY(start_line());
    return append_word(runtime_, out_, "}");
  }

  TemplateResult<void> write_key(const TemplateValue& key) {
    if (const PromptText* text = key.as_text()) return write_string(*text);
    return append_word(runtime_, out_, fmt::format("\"{}\"", json_word(key).value_or("")));
  }

  TemplateResult<void> sort(std::vector<TemplateDict::Entry>& entries) {
    return stable_sort_by(
        entries,
        [&](const TemplateDict::Entry& a, const TemplateDict::Entry& b) -> TemplateResult<bool> {
          return less(runtime_, a.key, b.key);
        });
  }

  JinjaRuntime& runtime_;
  const JsonStyle& style_;
  PromptTextBuilder out_;
  size_t level_ = 0;
};

std::string_view runtime_type_name(const TemplateValue& value) {
  if (value.is<JinjaIterator*>()) return "generator";
  if (value.is<JinjaLoop*>()) return "LoopContext";
  if (value.is<JinjaMacro*>()) return "Macro";
  if (value.is<JinjaNamespace*>()) return "Namespace";
  return value.is<const JinjaFunction*>() ? "function" : "builtin_function_or_method";
}

}  // namespace

std::string_view type_name(const TemplateValue& value) {
  constexpr std::array<std::string_view, 3> kViews = {"dict_keys", "dict_values", "dict_items"};
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.is<bool>()) return "bool";
  if (value.is<int64_t>() || value.is<TemplateValue::BigInteger>()) return "int";
  if (value.is<double>()) return "float";
  if (value.is<TemplateValue::Text>()) return "str";
  if (value.is<TemplateValue::Markup>()) return "Markup";
  if (value.is<TemplateValue::List>()) return "list";
  if (value.is<TemplateValue::Tuple>()) return "tuple";
  if (value.as_dict() != nullptr) return "dict";
  if (value.is<TemplateValue::Range>()) return "range";
  if (const auto* view = value.get_if<View>()) return kViews[static_cast<size_t>(view->part)];
  return runtime_type_name(value);
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                     std::chars_format::scientific);
  const std::string_view text(buffer.data(), static_cast<size_t>(written.ptr - buffer.data()));
  const size_t e = text.find('e');
  int exponent = 0;
  const size_t digits_of_exponent = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + digits_of_exponent, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const int mantissa_chars = static_cast<int>(e) - (text[0] == '-' ? 1 : 0);
  const int decimals = std::max(0, mantissa_chars - 2) - exponent;
  return fmt::format("{:.{}f}", value, std::max(1, decimals));
}

TemplateResult<void> append_text(JinjaRuntime& runtime, PromptTextBuilder& out,
                                 const TemplateValue& value) {
  if (const PromptText* text = value.as_text()) {
    TRY(make_room(runtime, out, text->text.size()));
    out.append(*text);
    return {};
  }
  if (value.is_undefined()) return {};
  if (value.is_none()) return append_word(runtime, out, "None");
  if (const bool* flag = value.get_if<bool>()) {
    return append_word(runtime, out, *flag ? "True" : "False");
  }
  if (const int64_t* integer = value.get_if<int64_t>()) {
    return append_word(runtime, out, std::to_string(*integer));
  }
  if (const auto* big = value.get_if<TemplateValue::BigInteger>()) {
    return append_word(runtime, out, *big->digits);
  }
  if (const double* real = value.get_if<double>()) {
    return append_word(runtime, out, float_repr(*real));
  }
  if (const auto* range = value.get_if<TemplateValue::Range>()) {
    return append_word(runtime, out, range_repr(*range));
  }
  if (value.depth() > 0 && !value.is<TemplateValue::BoundMethod>()) {
    return append_repr(runtime, out, value);
  }
  return fail(ErrorKind::kUnsupported, "a {} cannot be printed; did it lack a |list or ()?",
              type_name(value));
}

TemplateResult<PromptText> to_text(JinjaRuntime& runtime, const TemplateValue& value) {
  PromptTextBuilder out;
  TRY(append_text(runtime, out, value));
  return out.take();
}

TemplateResult<PromptText> to_json(JinjaRuntime& runtime, const TemplateValue& value,
                                   const JsonStyle& style) {
  return JsonWriter(runtime, style).run(value);
}

}  // namespace ingot::text
