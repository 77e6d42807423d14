#include "text/python_literal.h"

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace ingot::text {
namespace {

namespace json = base::json;

constexpr int kDepthMax = 32;

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::optional<json::value> read_all() {
    auto value = read_value(0);
    skip_space();
    if (!rest_.empty()) return std::nullopt;
    return value;
  }

 private:
  void skip_space() {
    const size_t end = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end);
  }

  bool take(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::optional<json::value> read_value(int depth) {
    if (depth > kDepthMax) return std::nullopt;
    if (take("True")) return json::value(true);
    if (take("False")) return json::value(false);
    if (take("None")) return json::value(nullptr);
    if (take("[")) return read_array("]", depth);
    if (take("(")) return read_array(")", depth);
    if (take("{")) return read_object(depth);
    if (rest_.starts_with('\'') || rest_.starts_with('"')) return read_string();
    return read_number();
  }

  std::optional<json::value> read_array(std::string_view close, int depth) {
    json::array array;
    while (!take(close)) {
      auto element = read_value(depth + 1);
      if (!element) return std::nullopt;
      array.push_back(std::move(*element));
      if (!take(",")) {
        if (!take(close)) return std::nullopt;
        // A value in parentheses is that value; a comma makes it a tuple.
        if (close == ")" && array.size() == 1) return array.front();
        break;
      }
    }
    return array;
  }

  std::optional<json::value> read_object(int depth) {
    json::object object;
    while (!take("}")) {
      skip_space();
      auto key = read_string();
      if (!key || !take(":")) return std::nullopt;
      auto value = read_value(depth + 1);
      if (!value) return std::nullopt;
      object.insert_or_assign(key->get_string(), std::move(*value));
      if (!take(",")) {
        if (!take("}")) return std::nullopt;
        break;
      }
    }
    return object;
  }

  // JSON's numbers; the few more that Python has stay text.
  std::optional<json::value> read_number() {
    const std::string_view digits = rest_.substr(0, rest_.find_first_not_of("+-.0123456789eE"));
    rest_.remove_prefix(digits.size());
    auto number = base::parse_json(digits, "number");
    if (!number) return std::nullopt;
    return std::move(*number);
  }

  std::optional<json::value> read_string() {
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    std::string text;
    while (!rest_.empty() && rest_.front() != '\n') {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == quote) return json::value(text);
      if (c != '\\') {
        text += c;
      } else if (!read_escape(text)) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  // After a backslash. Octal escapes and names of characters are not read.
  bool read_escape(std::string& out) {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    constexpr std::string_view kNames = "nrtabfv'\"\\\n";
    constexpr std::string_view kMeanings = "\n\r\t\a\b\f\v'\"\\";
    const size_t known = kNames.find(c);
    if (known != std::string_view::npos) {
      if (known < kMeanings.size()) out += kMeanings[known];  // a newline continues the line
      return true;
    }
    if (c != 'x' && c != 'u')
      return c != 'U' && c != 'N' && !(c >= '0' && c <= '7') && keep(out, c);
    const size_t digits = c == 'x' ? 2 : 4;
    if (rest_.size() < digits) return false;
    std::string quoted = c == 'x' ? "\"\\u00" : "\"\\u";
    quoted.append(rest_.substr(0, digits)).append("\"");
    rest_.remove_prefix(digits);
    // JSON knows the same escape; a half of a surrogate pair is refused there.
    const auto character = base::parse_json(quoted, "escape");
    if (!character || !character->is_string()) return false;
    out += character->get_string();
    return true;
  }

  // Python keeps the backslash of an escape that means nothing.
  static bool keep(std::string& out, char c) {
    out += '\\';
    out += c;
    return true;
  }

  std::string_view rest_;
};

}  // namespace

std::optional<json::value> parse_python_literal(std::string_view text) {
  return Reader(text).read_all();
}

}  // namespace ingot::text
