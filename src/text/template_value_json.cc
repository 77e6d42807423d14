// TemplateValue from JSON: a text, or a document that base::parse_json read.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <system_error>

#include <boost/json/basic_parser_impl.hpp>

#include "text/template_value.h"

namespace ingot::text {
namespace {

namespace js = boost::json;
using base::error;
using ErrorCode = boost::system::error_code;

constexpr size_t kNestingMax = 64;

// Builds a TemplateValue from the events of the library's parser.
class ValueHandler {
 public:
  static constexpr size_t max_object_size = js::object::max_size();
  static constexpr size_t max_array_size = js::array::max_size();
  static constexpr size_t max_key_size = js::string::max_size();
  static constexpr size_t max_string_size = js::string::max_size();

  TemplateValue release() { return std::move(root_); }

  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }
  bool on_object_begin(ErrorCode&) { return open(); }
  bool on_object_end(size_t, ErrorCode&) {
    TemplateDict dict = std::move(open_.back().dict);
    open_.pop_back();
    return add(TemplateValue::dict(std::move(dict)));
  }
  bool on_array_begin(ErrorCode&) { return open(); }
  bool on_array_end(size_t, ErrorCode&) {
    TemplateList list = std::move(open_.back().list);
    open_.pop_back();
    return add(TemplateValue::list(std::move(list)));
  }
  bool on_key_part(js::string_view part, size_t, ErrorCode&) { return keep(part); }
  bool on_key(js::string_view part, size_t, ErrorCode&) {
    keep(part);
    open_.back().key = std::exchange(text_, {});
    open_.back().in_object = true;
    return true;
  }
  bool on_string_part(js::string_view part, size_t, ErrorCode&) { return keep(part); }
  bool on_string(js::string_view part, size_t, ErrorCode&) {
    keep(part);
    return add(TemplateValue::data(std::exchange(text_, {})));
  }
  bool on_number_part(js::string_view part, ErrorCode&) { return keep(part); }
  bool on_int64(int64_t value, js::string_view, ErrorCode&) {
    text_.clear();
    return add(TemplateValue::integer(value));
  }
  bool on_uint64(uint64_t value, js::string_view, ErrorCode&) {
    text_.clear();
    return add(TemplateValue::big_integer(std::to_string(value)));
  }
  bool on_double(double approximate, js::string_view part, ErrorCode& code) {
    keep(part);
    const std::string number = std::exchange(text_, {});
    if (number.find_first_of(".eE") == std::string::npos) {
      return add(TemplateValue::big_integer(number));
    }
    double value = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
    if (read.ec != std::errc{}) {  // too small to tell from 0, or too large
      if (!(std::fabs(approximate) <= 1)) {
        code = js::error::exponent_overflow;
        return false;
      }
      value = approximate;
    }
    return add(TemplateValue::real(value));
  }
  bool on_bool(bool value, ErrorCode&) { return add(TemplateValue::boolean(value)); }
  bool on_null(ErrorCode&) { return add(TemplateValue::none()); }
  bool on_comment_part(js::string_view, ErrorCode&) { return true; }
  bool on_comment(js::string_view, ErrorCode&) { return true; }

 private:
  struct Container {
    TemplateList list;
    TemplateDict dict;
    std::string key;
    bool in_object = false;
  };

  bool open() {
    open_.emplace_back();
    return true;
  }
  bool keep(js::string_view part) {
    text_.append(part);
    return true;
  }
  bool add(TemplateValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().in_object) {
      open_.back().dict.set(TemplateValue::data(std::move(open_.back().key)), std::move(value));
    } else {
      open_.back().list.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Container> open_;
  std::string text_;
  TemplateValue root_;
};

std::string position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  return fmt::format("line {}, column {}", line, before.size() - (before.rfind('\n') + 1) + 1);
}

}  // namespace

base::Result<TemplateValue> TemplateValue::parse_json(std::string_view json,
                                                      std::string_view source) {
  js::parse_options options;
  options.max_depth = kNestingMax;
  js::basic_parser<ValueHandler> parser{options};
  ErrorCode code;
  size_t consumed = 0;
  try {
    consumed = parser.write_some(false, json.data(), json.size(), code);
  } catch (const std::exception& failure) {
    return error("{}: not readable as JSON: {}", source, failure.what());
  }
  if (code) {
    return error("{}: {}: not valid JSON: {}", source, position(json, consumed), code.message());
  }
  const size_t rest = json.find_first_not_of(" \t\r\n", consumed);
  if (rest != std::string_view::npos) {
    return error("{}: {}: text after the end of the JSON document", source, position(json, rest));
  }
  return parser.handler().release();
}

TemplateValue TemplateValue::from_json(const base::json::value& json) {
  if (const auto* object = json.if_object()) {
    TemplateDict dict;
    for (const auto& [key, member] : *object) {
      dict.set(data(std::string(key)), from_json(member));
    }
    return TemplateValue::dict(std::move(dict));
  }
  if (const auto* array = json.if_array()) {
    TemplateList items;
    items.reserve(array->size());
    for (const auto& element : *array) items.push_back(from_json(element));
    return list(std::move(items));
  }
  if (const auto* string = json.if_string()) return data(std::string(*string));
  if (const int64_t* integer = json.if_int64()) return TemplateValue::integer(*integer);
  if (const uint64_t* integer = json.if_uint64()) {
    return *integer <= INT64_MAX ? TemplateValue::integer(static_cast<int64_t>(*integer))
                                 : big_integer(std::to_string(*integer));
  }
  if (const double* real = json.if_double()) return TemplateValue::real(*real);
  if (const bool* flag = json.if_bool()) return boolean(*flag);
  return none();
}

}  // namespace ingot::text
