#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/tool_schema.h"

namespace ingot::cli {

// A conversation to answer, and the tools whose calls the answer may contain.
struct ChatRequest {
  text::ChatInputs inputs;
  std::vector<text::ToolSchema> tools = {};
};

// A conversation in a JSON file: {"messages": [...]} and what else a request has for the template
// (tools, documents, add_generation_prompt, chat_template_kwargs), or the messages alone.
// Errors: unreadable, no JSON, or another key.
base::Result<text::ChatInputs> read_chat_inputs(const std::filesystem::path& path);

// The same to be answered, as servers take it: arguments of tool calls may be JSON text, as in
// OpenAI's form. Errors: also tools that are none.
base::Result<ChatRequest> read_chat_request(const std::filesystem::path& path);

}  // namespace ingot::cli
