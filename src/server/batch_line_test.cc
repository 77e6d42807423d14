#include "server/batch_line.h"

#include <gtest/gtest.h>

#include "server/api_fixture.h"

namespace ingot::server {
namespace {

std::string line_with(std::string_view url, std::string_view body) {
  return fmt::format(R"({{"custom_id": "a-1", "method": "POST", "url": "{}", "body": {}}})", url,
                     body);
}

// "code (custom_id): message" of a line that is no request.
std::string error_of(std::string_view line) {
  const auto request = parse_batch_line(line);
  if (request) return "none";
  const BatchError& error = request.error();
  return fmt::format("{} ({}): {}", error.code, error.custom_id.value_or("-"), error.message);
}

TEST(BatchLine, RequestsOfBothEndpoints) {
  const auto chat = parse_batch_line(
      line_with("/v1/chat/completions",
                R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3,
          "chat_template_kwargs": {"big": 123456789012345678901}})"));
  ASSERT_TRUE(chat.has_value()) << chat.error().message;
  EXPECT_EQ(chat->custom_id, "a-1");
  ASSERT_TRUE(chat->request.has_value()) << chat->request.error().message;
  const auto& request = std::get<ChatRequest>(*chat->request);
  EXPECT_EQ(request.answer.max_tokens, 3);
  EXPECT_TRUE(request.inputs.extra.at(0).second.is<text::TemplateValue::BigInteger>());

  const auto completion =
      parse_batch_line(line_with("/v1/completions", R"({"prompt": [1, 2]})") + "\r\n");
  ASSERT_TRUE(completion.has_value() && completion->request.has_value());
  EXPECT_EQ(std::get<CompletionRequest>(*completion->request).prompts.size(), 1u);

  const auto prepared = prepare(*completion->request, nullptr, small_model_facts(), {});
  ASSERT_TRUE(prepared.has_value()) << prepared.error().message;
  EXPECT_EQ(prepared->form.endpoint, Endpoint::kCompletions);
  EXPECT_EQ(answer_fields(*chat->request).max_tokens, 3);
  // No template reads "big".
  const engine::ModelText model_text = small_model_text();
  const auto refused = prepare(*chat->request, &model_text, small_model_facts(), {});
  EXPECT_EQ(refused.error().param, "chat_template_kwargs");
}

TEST(BatchLine, ABodyThatIsRefusedIsAnAnswer) {
  const auto refused = parse_batch_line(line_with("/v1/completions", R"({"promt": "x"})"));
  ASSERT_TRUE(refused.has_value());
  ASSERT_FALSE(refused->request.has_value());
  EXPECT_EQ(refused->request.error().param, "prompt");
  const auto stream =
      parse_batch_line(line_with("/v1/completions", R"({"prompt": "x", "stream": true})"));
  EXPECT_EQ(stream->request.error().message, "stream is true; a batch file has no streams");
}

TEST(BatchLine, LinesThatAreNoRequest) {
  EXPECT_EQ(error_of(""),
            "invalid_json_line (-): request: line 1, column 1: not valid JSON: "
            "incomplete JSON");
  EXPECT_EQ(error_of("[]"), "invalid_json_line (-): the line is an array; it must be an object");
  EXPECT_TRUE(error_of("{\"custom_id\": \"\xff\"}").contains("not valid JSON"));
  EXPECT_TRUE(error_of(R"({"custom_id": "a", "custom_id": "b"})").contains("appears twice"));
  EXPECT_TRUE(error_of(std::string(100'000, '[')).contains("too deep"));
  EXPECT_EQ(error_of("{}"), "missing_custom_id (-): custom_id is nothing; it must be a string");
  EXPECT_EQ(error_of(R"({"custom_id": 5})"),
            "missing_custom_id (-): custom_id is 5; it must be a string");
  EXPECT_EQ(error_of(R"({"custom_id": "x", "method": "GET"})"),
            "invalid_method (x): method is \"GET\"; it must be \"POST\"");
  EXPECT_EQ(error_of(R"({"custom_id": "x", "method": "POST", "url": "/v1/embeddings"})"),
            "invalid_url (x): url is \"/v1/embeddings\"; it must be \"/v1/chat/completions\" or "
            "\"/v1/completions\"");
  EXPECT_EQ(error_of(R"({"custom_id": "x", "method": "POST", "url": "/v1/completions"})"),
            "missing_body (x): body is nothing; it must be an object");
  EXPECT_EQ(error_of(R"({"custom_id": "x", "method": "POST", "url": "/v1/completions",
                         "body": {"prompt": "p"}, "priority": 1})"),
            "unknown_field (x): priority is no field of a line; its fields are custom_id, method, "
            "url and body");
}

TEST(BatchLine, LinesOfTheOutput) {
  EXPECT_EQ(batch_answer_line("b-1", "a", "r-1", base::json::object{{"x", 1}}),
            R"({"id":"b-1","custom_id":"a","response":{"status_code":200,"request_id":"r-1",)"
            R"("body":{"x":1}},"error":null})"
            "\n");
  EXPECT_EQ(batch_answer_line("b-1", "a", "r-1", ApiError{.message = "n is 0", .param = "n"}),
            R"({"id":"b-1","custom_id":"a","response":{"status_code":400,"request_id":"r-1",)"
            R"("body":{"error":{"message":"n is 0","type":"invalid_request_error","param":"n",)"
            R"("code":null}}},"error":null})"
            "\n");
  EXPECT_EQ(batch_error_line("b-2", {.code = "invalid_url", .message = "m\n"}),
            R"({"id":"b-2","custom_id":null,"response":null,"error":{"code":"invalid_url",)"
            R"("message":"m\n"}})"
            "\n");
  EXPECT_TRUE(batch_error_line("b-2", {.custom_id = "é", .code = "c", .message = "m"})
                  .contains("\"custom_id\":\"é\""));
}

}  // namespace
}  // namespace ingot::server
