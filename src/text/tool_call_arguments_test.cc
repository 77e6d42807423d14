#include "text/tool_call_arguments.h"

#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace ingot::text {
namespace {

// What a template makes of the arguments of the only call.
std::string rendered(std::string_view messages) {
  const auto value = TemplateValue::parse_json(messages, "messages");
  const auto parsed = parse_tool_call_arguments(value.value());
  if (!parsed) return "error: " + parsed.error().message;
  const auto chat_template = ChatTemplate::parse(
      "{% for c in messages[0].tool_calls %}{% set f = c.function or c %}"
      "{% for k, v in f.arguments.items() %}{{ k }}={{ v | tojson }};{% endfor %}{% endfor %}",
      "template", {});
  const ChatInputs inputs{.messages = *parsed};
  return chat_template->render(inputs, std::tm{}).value().text;
}

TEST(ToolCallArguments, TextBecomesADictInItsOrder) {
  EXPECT_EQ(rendered(R"([{"role": "assistant", "tool_calls": [{"type": "function", "function":
                {"name": "f", "arguments": "{\"b\": 1, \"a\": \"x\"}"}}]}])"),
            "b=1;a=\"x\";");
  EXPECT_EQ(rendered(R"([{"tool_calls": [{"name": "f", "arguments": "{\"b\": [2]}"}]}])"),
            "b=[2];");
  // Beyond 64 bits.
  EXPECT_EQ(rendered(R"([{"tool_calls": [{"arguments": "{\"n\": 36893488147419103232}"}]}])"),
            "n=36893488147419103232;");
}

TEST(ToolCallArguments, DictsAndNothingStay) {
  EXPECT_EQ(rendered(R"([{"tool_calls": [{"function": {"arguments": {"a": 1}}}]}])"), "a=1;");
  EXPECT_EQ(rendered(R"([{"tool_calls": [{"function": {"arguments": ""}}]}])"), "");
  EXPECT_EQ(rendered(R"([{"role": "user", "content": "x", "tool_calls": null}])"), "");
  EXPECT_TRUE(parse_tool_call_arguments(TemplateValue::none())->is_none());
}

TEST(ToolCallArguments, RefusesWhatIsNoObject) {
  EXPECT_EQ(rendered(R"([{"tool_calls": [{"function": {"arguments": "[1]"}}]}])"),
            "error: messages[0].tool_calls[0].function.arguments: expected a JSON object");
  EXPECT_TRUE(rendered(R"([{"role": "user"}, {"tool_calls": [{"arguments": "{"}]}])")
                  .starts_with("error: messages[1].tool_calls[0].arguments"));
}

}  // namespace
}  // namespace ingot::text
