#include "server/api_error.h"

namespace ingot::server {
namespace {

namespace json = base::json;

constexpr size_t kShownBytesMax = 64;

}  // namespace

json::value text_or_null(std::string_view text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

json::object error_body(const ApiError& error) {
  return {{"error", json::object{{"message", error.message},
                                 {"type", error.type},
                                 {"param", text_or_null(error.param)},
                                 {"code", text_or_null(error.code)}}}};
}

std::string shown(std::string_view utf8) {
  if (utf8.size() <= kShownBytesMax) return std::string(utf8);
  size_t end = kShownBytesMax;
  while (end > 0 && (static_cast<unsigned char>(utf8[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}...", utf8.substr(0, end));
}

std::string shown(const json::value& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return shown(std::string_view(base::compact_json(value)));
}

}  // namespace ingot::server
