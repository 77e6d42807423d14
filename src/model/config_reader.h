#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace ingot::model {

// A string as JSON has it, in quotes and without control characters, cut short: for error lines
// that show what somebody wrote.
std::string shown_string(std::string_view text);

// Typed access to the keys of one JSON object, remembering which were read. A key with the value
// null counts as absent, as in published configs. Errors name source and key.
class ConfigReader {
 public:
  ConfigReader(const base::json::object& object, std::string source)
      : object_(object), source_(std::move(source)) {}

  // Null when absent.
  const base::json::value* find(std::string_view key);
  bool has(std::string_view key) { return find(key) != nullptr; }

  base::Result<int64_t> integer(std::string_view key, int64_t min, int64_t max);
  base::Result<int64_t> integer_or(std::string_view key, int64_t fallback, int64_t min,
                                   int64_t max);
  // Finite; also accepts integers.
  base::Result<double> number(std::string_view key, double min, double max);
  base::Result<double> number_or(std::string_view key, double fallback, double min, double max);
  base::Result<bool> boolean_or(std::string_view key, bool fallback);
  base::Result<std::string> string_or(std::string_view key, std::string_view fallback);
  // Empty when absent.
  base::Result<std::vector<std::string>> strings(std::string_view key);
  // Null when absent; an error when it is no object.
  base::Result<const base::json::object*> object(std::string_view key);

  // An error when the key is present and is not this value: something that we do not compute.
  base::Status require_string(std::string_view key, std::string_view value);
  base::Status require_boolean(std::string_view key, bool value);
  base::Status require_number(std::string_view key, double value);

  // An error when the key is present with anything but null, false, 0, or something empty: it asks
  // for arithmetic that Ingot does not have.
  base::Status require_absent(std::string_view key);

  // Marks a key as known to be harmless.
  void ignore(std::string_view key) { read_.emplace(key); }
  std::vector<std::string> unread_keys() const;

  const std::string& source() const { return source_; }

 private:
  const base::json::object& object_;
  std::string source_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace ingot::model
