#include "server/batch_line.h"

#include <optional>

namespace ingot::server {
namespace {

namespace json = base::json;

constexpr std::string_view kChatUrl = "/v1/chat/completions";
constexpr std::string_view kCompletionUrl = "/v1/completions";

std::optional<Endpoint> endpoint_of(const json::value* url) {
  if (url == nullptr || !url->is_string()) return std::nullopt;
  const std::string_view path = url->get_string();
  if (path == kChatUrl) return Endpoint::kChatCompletions;
  if (path == kCompletionUrl) return Endpoint::kCompletions;
  return std::nullopt;
}

// The value, or "nothing" where there is none, for an error.
std::string shown_field(const json::value* value) {
  return value == nullptr ? "nothing" : shown(*value);
}

ApiResult<ApiRequest> parse_body(Endpoint endpoint, const json::object& body,
                                 std::string_view line) {
  std::optional<ApiRequest> request;
  if (endpoint == Endpoint::kCompletions) {
    request = TRY(parse_completion_request(body));
  } else {
    const auto values = text::TemplateValue::parse_json(line, "request");
    if (!values) return refuse("", "{}", values.error().message);
    request = TRY(parse_chat_request(body, *values->as_dict()->find("body")));
  }
  if (answer_fields(*request).stream)
    return refuse("stream", "stream is true; a batch file has no streams");
  return std::move(*request);
}

std::optional<std::string> custom_id_of(const json::value& line) {
  const json::object* fields = line.if_object();
  const json::value* id = fields == nullptr ? nullptr : fields->if_contains("custom_id");
  if (id == nullptr || !id->is_string() || id->get_string().empty()) return std::nullopt;
  return std::string(id->get_string());
}

std::string output_line(json::object line) { return base::compact_json(line) + "\n"; }

json::object response(int status, std::string_view request_id, json::object body) {
  return {{"status_code", status}, {"request_id", request_id}, {"body", std::move(body)}};
}

}  // namespace

std::optional<std::string> batch_custom_id(std::string_view line) {
  const auto document = base::parse_json(line, "request");
  return document ? custom_id_of(*document) : std::nullopt;
}

std::expected<BatchRequest, BatchError> parse_batch_line(std::string_view line) {
  BatchError error;
  const auto fail = [&](std::string_view code, std::string message) {
    error.code = code;
    error.message = std::move(message);
    return std::unexpected(error);
  };
  const auto document = base::parse_json(line, "request");
  if (!document) return fail("invalid_json_line", document.error().message);
  if (!document->is_object()) {
    return fail("invalid_json_line",
                fmt::format("the line is {}; it must be an object", shown(*document)));
  }
  const json::object& fields = document->get_object();
  error.custom_id = custom_id_of(*document);
  if (!error.custom_id) {
    return fail("missing_custom_id", fmt::format("custom_id is {}; it must be a string, not empty",
                                                 shown_field(fields.if_contains("custom_id"))));
  }
  const json::value* method = fields.if_contains("method");
  if (method == nullptr || *method != "POST") {
    return fail("invalid_method",
                fmt::format("method is {}; it must be \"POST\"", shown_field(method)));
  }
  const json::value* url = fields.if_contains("url");
  const std::optional<Endpoint> endpoint = endpoint_of(url);
  if (!endpoint) {
    return fail("invalid_url", fmt::format("url is {}; it must be \"{}\" or \"{}\"",
                                           shown_field(url), kChatUrl, kCompletionUrl));
  }
  for (const auto& [key, value] : fields) {
    const bool is_known = key == "custom_id" || key == "method" || key == "url" || key == "body";
    if (!is_known && !value.is_null()) {
      return fail("unknown_field", fmt::format("{} is no field of a line; its fields are "
                                               "custom_id, method, url and body",
                                               shown(std::string_view(key))));
    }
  }
  const json::value* body = fields.if_contains("body");
  if (body == nullptr || !body->is_object()) {
    return fail("missing_body", fmt::format("body is {}; it must be an object", shown_field(body)));
  }
  return BatchRequest{.custom_id = *error.custom_id,
                      .request = parse_body(*endpoint, body->get_object(), line)};
}

std::string batch_answer_line(std::string_view id, std::string_view custom_id,
                              std::string_view request_id, const json::object& body) {
  return output_line({{"id", id},
                      {"custom_id", custom_id},
                      {"response", response(200, request_id, body)},
                      {"error", nullptr}});
}

std::string batch_answer_line(std::string_view id, std::string_view custom_id,
                              std::string_view request_id, const ApiError& error) {
  return output_line({{"id", id},
                      {"custom_id", custom_id},
                      {"response", response(error.status, request_id, error_body(error))},
                      {"error", nullptr}});
}

std::string batch_error_line(std::string_view id, const BatchError& error) {
  return output_line(
      {{"id", id},
       {"custom_id", error.custom_id ? json::value(*error.custom_id) : json::value(nullptr)},
       {"response", nullptr},
       {"error", json::object{{"code", error.code}, {"message", error.message}}}});
}

}  // namespace ingot::server
