#include "cli/chat_request.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "base/mapped_file.h"
#include "text/tool_call_arguments.h"

namespace ingot::cli {
namespace {

constexpr uint64_t kFileBytesMax = 1 << 30;

// What a template is given anyway.
constexpr std::string_view kRequestFields[] = {"messages", "tools", "documents",
                                               "add_generation_prompt"};

}  // namespace

base::Result<text::ChatInputs> read_chat_inputs(const std::filesystem::path& path) {
  const std::string source = path.string();
  const std::string content = TRY(base::read_text_file(path, kFileBytesMax));
  const text::TemplateValue document = TRY(text::TemplateValue::parse_json(content, source));
  text::ChatInputs inputs;
  if (document.as_sequence() != nullptr) {
    inputs.messages = document;
    return inputs;
  }
  const text::TemplateDict* request = document.as_dict();
  if (request == nullptr || request->find("messages") == nullptr) {
    return base::error("{}: expected an array of messages, or an object with \"messages\"", source);
  }
  for (const auto& [key, value] : request->entries()) {
    const std::string& name = key.as_text()->text;
    if (name == "messages") {
      inputs.messages = value;
    } else if (name == "tools") {
      inputs.tools = value;
    } else if (name == "documents") {
      inputs.documents = value;
    } else if (name == "add_generation_prompt" && value.get_if<bool>() != nullptr) {
      inputs.add_generation_prompt = *value.get_if<bool>();
    } else if (name == "chat_template_kwargs" && value.as_dict() != nullptr) {
      for (const auto& [option, argument] : value.as_dict()->entries()) {
        if (std::ranges::find(kRequestFields, option.as_text()->text) != std::end(kRequestFields)) {
          return base::error("{}: \"{}\" stands beside chat_template_kwargs, not in it", source,
                             option.as_text()->text);
        }
        inputs.extra.emplace_back(option.as_text()->text, argument);
      }
    } else {
      return base::error(
          "{}: \"{}\" is not read here; known are messages, tools, documents, "
          "add_generation_prompt and chat_template_kwargs",
          source, name);
    }
  }
  return inputs;
}

base::Result<ChatRequest> read_chat_request(const std::filesystem::path& path) {
  const std::string source = path.string();
  ChatRequest request { .inputs = TRY(read_chat_inputs(path)) };
  auto messages = text::parse_tool_call_arguments(request.inputs.messages);
  if (!messages) return base::error("{}: {}", source, messages.error().message);
  request.inputs.messages = std::move(*messages);
  const base::json::value document =
      TRY(base::parse_json(TRY(base::read_text_file(path, kFileBytesMax)), source));
  const base::json::object* fields = document.if_object();
  const base::json::value* tools = fields == nullptr ? nullptr : fields->if_contains("tools");
  if (tools == nullptr || tools->is_null()) return request;
  auto schemas = text::parse_tools(*tools);
  if (!schemas) return base::error("{}: {}", source, schemas.error().message);
  request.tools = std::move(*schemas);
  return request;
}

}  // namespace ingot::cli
