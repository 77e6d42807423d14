#include "model/config_reader.h"

#include <cmath>

#include <boost/json/serialize.hpp>

namespace ingot::model {
namespace {

using base::error;
namespace json = base::json;

// A value as text for an error line, cut short.
std::string shown(const json::value& value) {
  std::string text = json::serialize(value);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

}  // namespace

std::string shown_string(std::string_view text) { return shown(json::string(text)); }

const json::value* ConfigReader::find(std::string_view key) {
  read_.emplace(key);
  const json::value* value = object_.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

base::Result<int64_t> ConfigReader::integer(std::string_view key, int64_t min, int64_t max) {
  const json::value* value = find(key);
  if (value == nullptr) return error("{}: key \"{}\" is missing", source_, key);
  const int64_t* number = value->if_int64();
  if (number == nullptr || *number < min || *number > max) {
    return error("{}: \"{}\" is {}; expected an integer from {} to {}", source_, key, shown(*value),
                 min, max);
  }
  return *number;
}

base::Result<int64_t> ConfigReader::integer_or(std::string_view key, int64_t fallback, int64_t min,
                                               int64_t max) {
  if (!has(key)) return fallback;
  return integer(key, min, max);
}

base::Result<double> ConfigReader::number(std::string_view key, double min, double max) {
  const json::value* value = find(key);
  if (value == nullptr) return error("{}: key \"{}\" is missing", source_, key);
  if (value->is_number()) {
    const double number = value->to_number<double>();
    if (std::isfinite(number) && number >= min && number <= max) return number;
  }
  return error("{}: \"{}\" is {}; expected a number from {} to {}", source_, key, shown(*value),
               min, max);
}

base::Result<double> ConfigReader::number_or(std::string_view key, double fallback, double min,
                                             double max) {
  if (!has(key)) return fallback;
  return number(key, min, max);
}

base::Result<bool> ConfigReader::boolean_or(std::string_view key, bool fallback) {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) {
    return error("{}: \"{}\" is {}; expected true or false", source_, key, shown(*value));
  }
  return value->get_bool();
}

base::Result<std::string> ConfigReader::string_or(std::string_view key, std::string_view fallback) {
  const json::value* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) {
    return error("{}: \"{}\" is {}; expected a string", source_, key, shown(*value));
  }
  return std::string(value->get_string());
}

base::Result<std::vector<std::string>> ConfigReader::strings(std::string_view key) {
  std::vector<std::string> result;
  const json::value* value = find(key);
  if (value == nullptr) return result;
  const json::array* array = value->if_array();
  if (array == nullptr) {
    return error("{}: \"{}\" is {}; expected a list of strings", source_, key, shown(*value));
  }
  for (const json::value& element : *array) {
    if (!element.is_string()) {
      return error("{}: \"{}\" contains {}; expected strings", source_, key, shown(element));
    }
    result.emplace_back(element.get_string());
  }
  return result;
}

base::Result<const json::object*> ConfigReader::object(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) {
    return error("{}: \"{}\" is {}; expected an object", source_, key, shown(*value));
  }
  return &value->get_object();
}

base::Status ConfigReader::require_string(std::string_view key, std::string_view expected) {
  const std::string value = TRY(string_or(key, expected));
  if (value == expected) return {};
  return error("{}: \"{}\" is {}; Ingot computes only \"{}\"", source_, key, shown_string(value),
               expected);
}

base::Status ConfigReader::require_boolean(std::string_view key, bool expected) {
  const bool value = TRY(boolean_or(key, expected));
  if (value == expected) return {};
  return error("{}: \"{}\" is {}; Ingot computes only {}", source_, key, value, expected);
}

base::Status ConfigReader::require_number(std::string_view key, double expected) {
  const json::value* value = find(key);
  if (value == nullptr || (value->is_number() && value->to_number<double>() == expected)) return {};
  return error("{}: \"{}\" is {}; Ingot computes only {}", source_, key, shown(*value), expected);
}

base::Status ConfigReader::require_absent(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) return {};
  const bool empty = (value->is_bool() && !value->get_bool()) ||
                     (value->is_number() && value->to_number<double>() == 0) ||
                     (value->is_string() && value->get_string().empty()) ||
                     (value->is_array() && value->get_array().empty()) ||
                     (value->is_object() && value->get_object().empty());
  if (empty) return {};
  return error(
      "{}: \"{}\" is {}, which asks for arithmetic that Ingot does not have; use a model "
      "without it",
      source_, key, shown(*value));
}

std::vector<std::string> ConfigReader::unread_keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_) {
    if (!read_.contains(std::string_view(key))) keys.emplace_back(key);
  }
  return keys;
}

}  // namespace ingot::model
