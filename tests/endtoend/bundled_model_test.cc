// The bundled model, as people use it: it is a published checkpoint like any other, and it can do
// what its card says. How well is measured by train/; here it must answer most of a few items.

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "model/config_fixture.h"

namespace ingot::endtoend {
namespace {

namespace json = base::json;
using model::json_of;

const std::string kModel = INGOT_SOURCE_DIR "/models/ingot-3m";

// The first lines of tasks/NAME.jsonl.
std::vector<json::object> items_of(const std::string& task, size_t count) {
  std::ifstream file(kModel + "/tasks/" + task + ".jsonl");
  std::vector<json::object> items;
  for (std::string line; items.size() < count && std::getline(file, line);) {
    items.push_back(json_of(line).as_object());
  }
  EXPECT_EQ(items.size(), count) << task;
  return items;
}

// What `ingot chat` answers greedily.
json::object answer(json::object item) {
  item.erase("expected");
  const base::ScratchDirectory scratch;
  write_file(scratch / "request.json", json::serialize(item));
  const Outcome outcome =
      run_ingot({"chat", kModel, "--messages", (scratch / "request.json").string(), "--json",
                 "--kv-tokens", "1024", "--max-tokens", "128", "--threads", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return json_of(outcome.out).as_object();
}

constexpr size_t kItems = 6;
constexpr size_t kMostOfThem = 4;

// How many of the first items of a task are answered as `is_right` wants.
template <typename IsRight>
size_t num_right(const std::string& task, const IsRight& is_right) {
  size_t count = 0;
  for (const json::object& item : items_of(task, kItems)) {
    if (is_right(answer(item), item.at("expected"))) ++count;
  }
  return count;
}

bool is_final_answer(const json::object& said, const json::value& expected) {
  const std::string_view content = said.at("content").as_string();
  return content == "The answer is " + std::string(expected.as_string()) + ".";
}

TEST(BundledModel, InspectFindsNothingToComplainAbout) {
  const Outcome outcome = run_ingot({"inspect", kModel, "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const json::value document = json_of(outcome.out);
  EXPECT_TRUE(document.at("findings").as_array().empty()) << outcome.out;
}

TEST(BundledModel, SolvesWordProblemsWithReasoning) {
  EXPECT_GE(num_right("arithmetic",
                      [](const json::object& said, const json::value& expected) {
                        EXPECT_FALSE(said.at("reasoning_content").as_string().empty());
                        return is_final_answer(said, expected);
                      }),
            kMostOfThem);
}

TEST(BundledModel, ChoosesAmongFourOptions) {
  EXPECT_GE(num_right("choice", is_final_answer), kMostOfThem);
}

TEST(BundledModel, CallsTools) {
  EXPECT_GE(num_right("tools",
                      [](const json::object& said, const json::value& expected) {
                        if (!expected.is_object()) return said.at("content") == expected;
                        if (!said.contains("tool_calls")) return false;
                        const json::value& function =
                            said.at("tool_calls").as_array().front().at("function");
                        return function.at("name") == expected.at("name") &&
                               json_of(function.at("arguments").as_string()) ==
                                   expected.at("arguments");
                      }),
            kMostOfThem);
}

TEST(BundledModel, TakesAConversationFromAFileOrSaysWhyNot) {
  const base::ScratchDirectory scratch;
  const std::string file = (scratch / "request.json").string();
  const auto refusal = [&](std::string_view content, std::vector<std::string> more = {}) {
    write_file(file, content);
    more.insert(more.begin(), {"chat", kModel, "--messages", file});
    const Outcome outcome = run_ingot(more);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  const std::string hello = R"([{"role": "user", "content": "Hello"}])";
  EXPECT_TRUE(refusal(hello, {"--system", "Be brief"}).contains("excludes"));
  EXPECT_TRUE(refusal(hello, {"And this"}).contains("excludes"));
  EXPECT_TRUE(refusal("{}").contains("messages"));
  EXPECT_TRUE(refusal(R"({"messages": [], "temperature": 1})").contains("\"temperature\""));
  EXPECT_TRUE(refusal(R"({"messages": [], "tools": [{"name": 1}]})").contains("tool"));
  EXPECT_TRUE(refusal(R"([{"role": "assistant", "tool_calls":
                          [{"function": {"name": "f", "arguments": "x"}}]}])")
                  .contains("messages[0].tool_calls[0].function.arguments"));
  EXPECT_TRUE(refusal("", {"--kv-tokens", "64"}).contains(file));

  write_file(file, hello);
  const std::vector<std::string> greedy = {"chat", kModel,        "--max-tokens",
                                           "16",   "--kv-tokens", "256"};
  auto by_file = greedy;
  by_file.insert(by_file.end(), {"--messages", file});
  auto by_message = greedy;
  by_message.push_back("Hello");
  EXPECT_EQ(run_ingot(by_file).out, run_ingot(by_message).out);
}

}  // namespace
}  // namespace ingot::endtoend
