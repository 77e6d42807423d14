#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/api_error.h"

namespace ingot::server {

// Reads the fields of a request's body into variables, which stay as they are where a field is
// absent or null. It remembers which fields were read, and the first thing that is wrong.
class FieldReader {
 public:
  // `body` must outlive it.
  explicit FieldReader(const base::json::object& body) : body_(body) {}

  // Null: absent or null.
  const base::json::value* find(std::string_view name);

  void boolean(std::string_view name, bool& value);
  void number(std::string_view name, double& value);
  void number(std::string_view name, std::optional<double>& value);
  // A whole number within [min, max]; 16.0 is one.
  void integer(std::string_view name, int32_t& value, int32_t min, int32_t max);
  void integer(std::string_view name, std::optional<int32_t>& value, int32_t min, int32_t max);
  void string(std::string_view name, std::string& value);
  // Ids from 0 on.
  void ids(std::string_view name, std::vector<int32_t>& value, size_t num_max);

  // A field that is not honoured. `values` is a JSON array of those that ask for nothing and pass.
  void only(std::string_view name, std::string_view values);
  // A field that carries no behaviour.
  void ignore(std::string_view name) { read_.emplace(name); }

  // Keeps the first error.
  void fail(ApiError error);
  void fail(std::string_view param, std::string message);
  const ApiError* error() const { return error_ ? &*error_ : nullptr; }  // null: none so far

  // The first error; one that names a field that nobody has read, if it is not null.
  ApiResult<void> finish() const;

 private:
  const base::json::object& body_;
  std::set<std::string, std::less<>> read_;
  std::optional<ApiError> error_;
};

// A whole number in JSON, 16.0 included, that an int64_t holds.
std::optional<int64_t> whole_number(const base::json::value& value);
// An id from 0 to 2^31 - 1.
std::optional<int32_t> token_id(const base::json::value& value);

}  // namespace ingot::server
