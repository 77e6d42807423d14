#include "server/field_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::server {
namespace {

namespace json = base::json;

constexpr double kWholeDoubleMax = 1LL << 53;

}  // namespace

std::optional<int64_t> whole_number(const json::value& value) {
  if (const int64_t* number = value.if_int64()) return *number;
  const double* number = value.if_double();
  if (number == nullptr || std::abs(*number) > kWholeDoubleMax || std::trunc(*number) != *number) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

std::optional<int32_t> token_id(const json::value& value) {
  const int64_t* id = value.if_int64();
  if (id == nullptr || *id < 0 || *id > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*id);
}

const json::value* FieldReader::find(std::string_view name) {
  read_.emplace(name);
  const json::value* value = body_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void FieldReader::boolean(std::string_view name, bool& value) {
  const json::value* field = find(name);
  if (field == nullptr) return;
  if (field->is_bool()) {
    value = field->get_bool();
  } else {
    fail(name, fmt::format("{} is {}; it must be true or false", name, shown(*field)));
  }
}

void FieldReader::number(std::string_view name, std::optional<double>& value) {
  const json::value* field = find(name);
  if (field == nullptr) return;
  if (field->is_number()) {
    value = field->to_number<double>();
  } else {
    fail(name, fmt::format("{} is {}; it must be a number", name, shown(*field)));
  }
}

void FieldReader::number(std::string_view name, double& value) {
  std::optional<double> given;
  number(name, given);
  value = given.value_or(value);
}

void FieldReader::integer(std::string_view name, std::optional<int32_t>& value, int32_t min,
                          int32_t max) {
  const json::value* field = find(name);
  if (field == nullptr) return;
  const std::optional<int64_t> number = whole_number(*field);
  if (number && *number >= min && *number <= max) {
    value = static_cast<int32_t>(*number);
  } else {
    fail(name, fmt::format("{} is {}; it must be a whole number from {} to {}", name, shown(*field),
                           min, max));
  }
}

void FieldReader::integer(std::string_view name, int32_t& value, int32_t min, int32_t max) {
  std::optional<int32_t> given;
  integer(name, given, min, max);
  value = given.value_or(value);
}

void FieldReader::string(std::string_view name, std::string& value) {
  const json::value* field = find(name);
  if (field == nullptr) return;
  if (field->is_string()) {
    value = field->get_string();
  } else {
    fail(name, fmt::format("{} is {}; it must be a string", name, shown(*field)));
  }
}

void FieldReader::ids(std::string_view name, std::vector<int32_t>& value, size_t num_max) {
  const json::value* field = find(name);
  if (field == nullptr) return;
  const json::array* list = field->if_array();
  if (list == nullptr || list->size() > num_max) {
    return fail(name, fmt::format("{} must be an array of at most {} token ids", name, num_max));
  }
  value.clear();
  for (const json::value& element : *list) {
    const std::optional<int32_t> id = token_id(element);
    if (!id) {
      return fail(name, fmt::format("{}[{}] is {}; it must be a token id", name, value.size(),
                                    shown(element)));
    }
    value.push_back(*id);
  }
}

void FieldReader::only(std::string_view name, std::string_view values) {
  const json::value* field = find(name);
  if (field == nullptr) return;
  const json::array allowed = base::parse_json(values, name).value().as_array();
  if (std::ranges::find(allowed, *field) != allowed.end()) return;
  std::string list;
  for (const json::value& value : allowed) {
    list += (list.empty() ? "" : " or ") + base::compact_json(value);
  }
  fail({.message = fmt::format("{} is not supported here but for {}; leave it out", name, list),
        .param = std::string(name),
        .code = "unsupported_parameter"});
}

void FieldReader::fail(ApiError error) {
  if (!error_) error_ = std::move(error);
}

void FieldReader::fail(std::string_view param, std::string message) {
  fail(ApiError{.message = std::move(message), .param = std::string(param)});
}

ApiResult<void> FieldReader::finish() const {
  if (error_) return std::unexpected(*error_);
  for (const auto& [key, value] : body_) {
    if (value.is_null() || read_.contains(std::string_view(key))) continue;
    return std::unexpected(ApiError{.message = fmt::format("{} is not supported here; leave it out",
                                                           shown(std::string_view(key))),
                                    .param = shown(std::string_view(key)),
                                    .code = "unsupported_parameter"});
  }
  return {};
}

}  // namespace ingot::server
