// Our JSON reader against the library's: both accept the same documents with the same values, but
// for repeated keys and numbers that fit no double, which only ours refuses; and what we print
// reads back.

#include <cmath>
#include <cstdint>
#include <string_view>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/check.h"
#include "base/json.h"

namespace {

namespace json = boost::json;

bool equal(const json::value& a, const json::value& b);

bool equal(const json::object& a, const json::object& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto& member = a.begin()[i];
    const auto& other = b.begin()[i];
    if (member.key() != other.key() || !equal(member.value(), other.value())) return false;
  }
  return true;
}

bool equal(const json::array& a, const json::array& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

// Equal in kind, order and value, but for doubles: there the library may miss the last bits, and
// makes infinity or NaN of some numbers with large exponents.
bool equal(const json::value& a, const json::value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_object()) return equal(a.get_object(), b.get_object());
  if (a.is_array()) return equal(a.get_array(), b.get_array());
  if (!a.is_double()) return a == b;
  const double x = a.get_double();
  const double y = b.get_double();
  return !std::isfinite(y) || x == y || std::fabs(x - y) <= 1e-14 * std::fabs(x) + 1e-320;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  boost::system::error_code failure;
  const json::value expected = json::parse(text, failure);
  const auto parsed = ingot::base::parse_json(text, "input");
  if (!parsed) {
    const std::string& message = parsed.error().message;
    CHECK(message.starts_with("input: "), message);
    CHECK(message.find('\n') == std::string::npos, message);
    CHECK(failure || message.find("appears twice") != std::string::npos ||
              message.find("exponent overflow") != std::string::npos,
          message);
    return 0;
  }
  CHECK(!failure, failure.message());
  CHECK(equal(*parsed, expected));

  const std::string printed = ingot::base::pretty_json(*parsed);
  CHECK(printed.ends_with('\n'));
  const auto again = ingot::base::parse_json(printed, "printed");
  CHECK(again.has_value(), again ? "" : again.error().message);
  CHECK(*again == *parsed, printed);
  return 0;
}
