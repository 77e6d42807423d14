#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/api_error.h"
#include "server/prepared_request.h"

// OpenAI's batch files: JSON lines, a request or an answer in each.
//
//   const auto line = parse_batch_line(text);
//   if (!line) return batch_error_line(id, line.error());
//   if (!line->request) return batch_answer_line(id, line->custom_id, request_id,
//                                                line->request.error());
//   const auto prepared = prepare(*line->request, model_text, facts, now);
//   ...  // as prepared_request.h shows, up to collector.body() or an ApiError
//   return batch_answer_line(id, line->custom_id, request_id, *body);
namespace ingot::server {

// {"custom_id": "...", "method": "POST", "url": "/v1/chat/completions", "body": {...}}
struct BatchRequest {
  std::string custom_id;
  ApiResult<ApiRequest> request;  // the body; an error is the answer
};

// Why a line is no request at all.
struct BatchError {
  std::optional<std::string> custom_id = {};  // where the line has one
  std::string code = {};
  std::string message = {};
};

// What a line of the input, and the line that answers it, are known by; absent where it has none.
std::optional<std::string> batch_custom_id(std::string_view line);

// `line` is one JSON document. Streams are refused: a file is not one. Whether a custom_id stands
// in one line alone is the caller's to check.
std::expected<BatchRequest, BatchError> parse_batch_line(std::string_view line);

// The lines of the output, with their line feed. `id` names the line, `request_id` what was asked
// of the engine; both are unique. An answer:
//   {"id", "custom_id", "response": {"status_code": 200, "request_id", "body"}, "error": null}
std::string batch_answer_line(std::string_view id, std::string_view custom_id,
                              std::string_view request_id, const base::json::object& body);
// A request that was refused or failed: the same with its status, and its error as the body.
std::string batch_answer_line(std::string_view id, std::string_view custom_id,
                              std::string_view request_id, const ApiError& error);
// A line that is no request: "response" is null and "error" {"code", "message"}.
std::string batch_error_line(std::string_view id, const BatchError& error);

}  // namespace ingot::server
