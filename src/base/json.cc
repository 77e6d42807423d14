#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>

namespace ingot::base {
namespace {

namespace js = boost::json;
using ErrorCode = boost::system::error_code;

// Builds a json::value as boost::json::parser does, but refuses repeated keys.
class StrictHandler {
 public:
  static constexpr size_t max_object_size = js::object::max_size();
  static constexpr size_t max_array_size = js::array::max_size();
  static constexpr size_t max_key_size = js::string::max_size();
  static constexpr size_t max_string_size = js::string::max_size();

  json::value release() { return stack_.release(); }
  const std::optional<std::string>& repeated_key() const { return repeated_key_; }

  bool on_document_begin(ErrorCode&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode&) {
    keys_.emplace_back();
    return true;
  }
  bool on_object_end(size_t count, ErrorCode&) {
    keys_.pop_back();
    stack_.push_object(count);
    return true;
  }
  bool on_array_begin(ErrorCode&) { return true; }
  bool on_array_end(size_t count, ErrorCode&) {
    stack_.push_array(count);
    return true;
  }
  bool on_key_part(js::string_view part, size_t, ErrorCode&) {
    key_.append(part);
    stack_.push_chars(part);
    return true;
  }
  bool on_key(js::string_view part, size_t, ErrorCode& code) {
    key_.append(part);
    if (!keys_.back().insert(key_).second) {
      repeated_key_ = key_;
      code = js::error::syntax;
      return false;
    }
    key_.clear();
    stack_.push_key(part);
    return true;
  }
  bool on_string_part(js::string_view part, size_t, ErrorCode&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(js::string_view part, size_t, ErrorCode&) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(js::string_view part, ErrorCode&) {
    number_.append(part);
    return true;
  }
  bool on_int64(int64_t value, js::string_view, ErrorCode&) {
    number_.clear();
    stack_.push_int64(value);
    return true;
  }
  bool on_uint64(uint64_t value, js::string_view, ErrorCode&) {
    number_.clear();
    stack_.push_uint64(value);
    return true;
  }
  // The library's value is only near the nearest double and may be infinite.
  bool on_double(double approximate, js::string_view part, ErrorCode& code) {
    number_.append(part);
    double value = approximate;
    const auto read = std::from_chars(number_.data(), number_.data() + number_.size(), value);
    number_.clear();
    if (read.ec != std::errc{}) {  // too small to tell from 0, or too large
      if (!(std::fabs(approximate) <= 1)) {
        code = js::error::exponent_overflow;
        return false;
      }
      value = approximate;
    }
    stack_.push_double(value);
    return true;
  }
  bool on_bool(bool value, ErrorCode&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(ErrorCode&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(js::string_view, ErrorCode&) { return true; }
  bool on_comment(js::string_view, ErrorCode&) { return true; }

 private:
  js::value_stack stack_;
  std::vector<std::unordered_set<std::string>> keys_;
  std::string key_;
  std::string number_;
  std::optional<std::string> repeated_key_;
};

// "line 3, column 7" of byte `offset`, both counted from 1.
std::string position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("line {}, column {}", line, before.size() - line_start + 1);
}

// JSON has no word for infinity, and what the library writes instead no reader accepts.
// The shortest digits that read back as this number; a point keeps whole numbers floating.
std::string double_text(double number) {
  if (!std::isfinite(number)) return "null";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void append_scalar(std::string& out, const json::value& value) {
  const double* number = value.if_double();
  out += number != nullptr ? double_text(*number) : js::serialize(value);
}

void append_indented(std::string& out, const json::value& value, int depth) {
  const std::string indent(static_cast<size_t>(depth + 1) * 2, ' ');
  const std::string closing(static_cast<size_t>(depth) * 2, ' ');
  if (const json::object* object = value.if_object(); object != nullptr && !object->empty()) {
    out += "{\n";
    const char* separator = "";
    for (const auto& [key, member] : *object) {
      out += separator + indent + js::serialize(js::string(key)) + ": ";
      append_indented(out, member, depth + 1);
      separator = ",\n";
    }
    out += "\n" + closing + "}";
    return;
  }
  const json::array* array = value.if_array();
  if (array == nullptr) return append_scalar(out, value);
  // An array of numbers and texts stays on one line.
  const bool nested = std::any_of(array->begin(), array->end(),
                                  [](const json::value& v) { return v.is_structured(); });
  out += nested ? "[\n" : "[";
  const char* separator = "";
  for (const json::value& element : *array) {
    out += separator + (nested ? indent : "");
    append_indented(out, element, depth + 1);
    separator = nested ? ",\n" : ",";
  }
  out += nested ? "\n" + closing + "]" : "]";
}

void append_compact(std::string& out, const json::value& value) {
  const char* separator = "";
  if (const json::object* object = value.if_object()) {
    out += '{';
    for (const auto& [key, member] : *object) {
      out += separator + js::serialize(js::string(key)) + ":";
      append_compact(out, member);
      separator = ",";
    }
    out += '}';
  } else if (const json::array* array = value.if_array()) {
    out += '[';
    for (const json::value& element : *array) {
      out += separator;
      append_compact(out, element);
      separator = ",";
    }
    out += ']';
  } else {
    append_scalar(out, value);
  }
}

}  // namespace

Result<json::value> parse_json(std::string_view text, std::string_view source) {
  js::basic_parser<StrictHandler> parser{js::parse_options{}};
  ErrorCode code;
  size_t consumed = 0;
  try {
    consumed = parser.write_some(false, text.data(), text.size(), code);
  } catch (const std::exception& failure) {
    return error("{}: not readable as JSON: {}", source, failure.what());
  }
  if (const auto& key = parser.handler().repeated_key()) {
    return error("{}: {}: key {:?} appears twice; remove one of them", source,
                 position(text, consumed), *key);
  }
  if (code) {
    return error("{}: {}: not valid JSON: {}", source, position(text, consumed), code.message());
  }
  const size_t rest = text.find_first_not_of(" \t\r\n", consumed);
  if (rest != std::string_view::npos) {
    return error("{}: {}: text after the end of the JSON document", source, position(text, rest));
  }
  return parser.handler().release();
}

std::string pretty_json(const json::value& value) {
  std::string out;
  append_indented(out, value, 0);
  return out + "\n";
}

std::string compact_json(const json::value& value) {
  std::string out;
  append_compact(out, value);
  return out;
}

}  // namespace ingot::base
