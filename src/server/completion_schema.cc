#include "server/completion_schema.h"

#include <limits>
#include <span>

namespace ingot::server {
namespace {

namespace json = base::json;

constexpr const char* kForms =
    "prompt must be a string, an array of token ids, or an array of strings or of such arrays";

// A string, or an array of ids.
std::optional<CompletionPrompt> read_one(FieldReader& reader, const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  const json::array* list = value.if_array();
  if (list == nullptr) {
    reader.fail("prompt", kForms);
    return std::nullopt;
  }
  std::vector<int32_t> ids;
  ids.reserve(list->size());
  for (const json::value& element : *list) {
    const std::optional<int32_t> id = token_id(element);
    if (!id) {
      reader.fail("prompt",
                  fmt::format("prompt has {} among its token ids; {}", shown(element), kForms));
      return std::nullopt;
    }
    ids.push_back(*id);
  }
  return ids;
}

void read_prompt(FieldReader& reader, std::vector<CompletionPrompt>& prompts) {
  const json::value* field = reader.find("prompt");
  if (field == nullptr) return reader.fail("prompt", "prompt is missing");
  const json::array* list = field->if_array();
  if (list != nullptr && list->empty()) return reader.fail("prompt", "prompt is empty");
  const bool several = list != nullptr && (list->front().is_string() || list->front().is_array());
  for (const json::value& value :
       several ? std::span(list->data(), list->size()) : std::span(field, 1)) {
    std::optional<CompletionPrompt> prompt = read_one(reader, value);
    if (!prompt) return;
    const bool is_empty = std::visit([](const auto& content) { return content.empty(); }, *prompt);
    if (is_empty) return reader.fail("prompt", "a prompt is empty; there is nothing to continue");
    prompts.push_back(std::move(*prompt));
  }
}

}  // namespace

ApiResult<CompletionRequest> parse_completion_request(const json::object& body) {
  CompletionRequest request;
  AnswerFields& answer = request.answer;
  answer.max_tokens = kCompletionMaxTokensDefault;
  FieldReader reader(body);
  read_answer_fields(reader, answer);
  read_prompt(reader, request.prompts);
  reader.integer("max_tokens", answer.max_tokens, 0, std::numeric_limits<int32_t>::max());
  reader.integer("logprobs", answer.top_logprobs, 0, engine::kTopLogprobsMax);
  reader.boolean("echo", request.echo);
  reader.only("best_of", fmt::format("[{}]", answer.n));
  reader.only("suffix", R"([""])");
  TRY(reader.finish());
  if (request.prompts.size() > kCompletionChoicesMax / static_cast<size_t>(answer.n)) {
    return refuse("prompt", "{} prompts with {} answers each; a request can have {} answers in all",
                  request.prompts.size(), answer.n, kCompletionChoicesMax);
  }
  return request;
}

ApiResult<CompletionRequest> parse_completion_request(std::string_view body) {
  const auto document = base::parse_json(body, "request");
  if (!document) return refuse("", "{}", document.error().message);
  if (!document->is_object())
    return refuse("", "the request is {}; it must be an object", shown(*document));
  return parse_completion_request(document->get_object());
}

}  // namespace ingot::server
