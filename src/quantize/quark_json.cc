#include "quantize/quark_json.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;

constexpr size_t kIndent = 4;

void append_string(std::string& text, std::string_view value) {
  text += '"';
  for (const char c : value) {
    switch (c) {
      case '"':
        text += "\\\"";
        break;
      case '\\':
        text += "\\\\";
        break;
      case '\b':
        text += "\\b";
        break;
      case '\f':
        text += "\\f";
        break;
      case '\n':
        text += "\\n";
        break;
      case '\r':
        text += "\\r";
        break;
      case '\t':
        text += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(text), "\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          text += c;
        }
    }
  }
  text += '"';
}

// The fewest digits that give the number back; with an exponent below 1e-4 and from 1e16 on.
void append_double(std::string& text, double value) {
  CHECK(std::isfinite(value), "a number that JSON does not have");
  const double magnitude = std::abs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  char buffer[64];
  const auto result =
      std::to_chars(buffer, buffer + sizeof buffer, value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string_view digits(buffer, result.ptr);
  text += digits;
  if (plain && !digits.contains('.')) text += ".0";
}

// Writes `[` or `{`, the members a line each, and the closing bracket.
template <typename Members, typename AppendMember>
void append_members(std::string& text, const Members& members, char open, char close, size_t depth,
                    AppendMember append_member) {
  text += open;
  bool first = true;
  for (const auto& member : members) {
    text += first ? "\n" : ",\n";
    text.append((depth + 1) * kIndent, ' ');
    append_member(member);
    first = false;
  }
  if (!first) {
    text += '\n';
    text.append(depth * kIndent, ' ');
  }
  text += close;
}

void append_value(std::string& text, const json::value& value, size_t depth) {
  switch (value.kind()) {
    case json::kind::null:
      text += "null";
      break;
    case json::kind::bool_:
      text += value.get_bool() ? "true" : "false";
      break;
    case json::kind::int64:
      text += std::to_string(value.get_int64());
      break;
    case json::kind::uint64:
      text += std::to_string(value.get_uint64());
      break;
    case json::kind::double_:
      append_double(text, value.get_double());
      break;
    case json::kind::string:
      append_string(text, value.get_string());
      break;
    case json::kind::array:
      append_members(text, value.get_array(), '[', ']', depth,
                     [&](const json::value& member) { append_value(text, member, depth + 1); });
      break;
    case json::kind::object:
      append_members(text, value.get_object(), '{', '}', depth,
                     [&](const json::key_value_pair& member) {
                       append_string(text, member.key());
                       text += ": ";
                       append_value(text, member.value(), depth + 1);
                     });
      break;
  }
}

}  // namespace

std::string quark_json(const json::value& value) {
  std::string text;
  append_value(text, value, 0);
  return text;
}

}  // namespace ingot::quantize
