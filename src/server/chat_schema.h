#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/answer_fields.h"
#include "server/api_error.h"
#include "text/chat_template.h"
#include "text/tool_schema.h"

namespace ingot::server {

// The body of a /v1/chat/completions request: what the chat template is given, and the answer that
// is wanted.
struct ChatRequest {
  AnswerFields answer = {};
  // Arguments of tool calls among the messages are dicts here; with "tool_choice": "none" there are
  // no tools.
  text::ChatInputs inputs = {};
  std::vector<text::ToolSchema> tools = {};
  // As sent; empty: nothing is said of it. "none" asks for no reasoning at all.
  std::string reasoning_effort = {};
};

// `body` as JSON, and as what the template sees of it (TemplateValue::parse_json of the same text),
// which has integers of any size. Errors name the field: one that is not known or not honoured, of
// the wrong type, out of range. What no field says alone (temperature and so on against their
// ranges, the prompt against the context) is checked by prepare().
ApiResult<ChatRequest> parse_chat_request(const base::json::object& body,
                                          const text::TemplateValue& values);

// The same of a body's text. Errors: also text that is no JSON object.
ApiResult<ChatRequest> parse_chat_request(std::string_view body);

}  // namespace ingot::server
