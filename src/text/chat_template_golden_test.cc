// Templates rendered by jinja2 in the settings of Hugging Face's library, and by us.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "text/chat_template.h"
#include "text/jinja_parser.h"
#include "text/jinja_renderer.h"

namespace ingot::text {
namespace {

const std::string kGolden = std::string(INGOT_SOURCE_DIR) + "/tests/golden/text/";
constexpr uint64_t kBytesMax = uint64_t{1} << 30;

// 2026-03-07 14:05:09, a Saturday.
std::tm fixed_time() {
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 2;
  now.tm_mday = 7;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 9;
  now.tm_wday = 6;
  now.tm_yday = 65;
  return now;
}

TemplateValue read_json(const std::string& path) {
  const auto text = base::read_text_file(path, kBytesMax);
  EXPECT_TRUE(text.has_value()) << path;
  const auto value = TemplateValue::parse_json(text ? *text : "null", path);
  EXPECT_TRUE(value.has_value()) << value.error().message;
  return value.value_or(TemplateValue::none());
}

const TemplateValue& member(const TemplateDict& dict, std::string_view name) {
  static const TemplateValue nothing = TemplateValue::none();
  const TemplateValue* value = dict.find(name);
  return value != nullptr ? *value : nothing;
}

std::string text_member(const TemplateDict& dict, std::string_view name) {
  const PromptText* text = member(dict, name).as_text();
  return text != nullptr ? text->text : std::string();
}

TemplateVariables variables_of(const TemplateValue& dict) {
  TemplateVariables variables;
  if (dict.as_dict() == nullptr) return variables;
  for (const auto& [key, value] : dict.as_dict()->entries()) {
    variables.emplace_back(key.as_text()->text, value);
  }
  return variables;
}

TemplateResult<PromptText> render_text(std::string_view source, const TemplateValue& variables) {
  const JinjaTemplate parsed = TRY(parse_jinja(source));
  return render_jinja(parsed, variables_of(variables), fixed_time());
}

// Our kind of error for the exception that Python raises.
bool is_kind_of(const TemplateError& failure, std::string_view exception) {
  switch (failure.kind) {
    case TemplateError::Kind::kUndefined:
      return exception == "UndefinedError";
    case TemplateError::Kind::kSecurity:
      return exception == "SecurityError";
    case TemplateError::Kind::kType:
      return exception == "TypeError";
    case TemplateError::Kind::kRaised:
      return exception == "TemplateError";
    default:
      return false;
  }
}

TEST(ChatTemplateGolden, VectorsOfTheOracle) {
  const TemplateValue vectors = read_json(kGolden + "jinja_vectors.json");
  ASSERT_NE(vectors.as_sequence(), nullptr);
  ASSERT_EQ(vectors.as_sequence()->size(), 44u);
  for (const TemplateValue& vector : *vectors.as_sequence()) {
    const TemplateDict& row = *vector.as_dict();
    const std::string source = text_member(row, "template");
    const auto rendered = render_text(source, member(row, "vars"));
    if (row.find("error") != nullptr) {
      ASSERT_FALSE(rendered.has_value()) << source << " -> " << rendered->text;
      EXPECT_TRUE(is_kind_of(rendered.error(), text_member(row, "error")))
          << source << ": " << rendered.error().reason;
    } else {
      ASSERT_TRUE(rendered.has_value()) << source << ": " << rendered.error().reason;
      EXPECT_EQ(rendered->text, text_member(row, "output")) << source;
    }
  }
}

TEST(ChatTemplateGolden, ConversationsInAllTemplates) {
  const TemplateValue document = read_json(kGolden + "chat_templates.json");
  const TemplateDict& golden = *document.as_dict();
  SpecialTokensMap tokens;
  for (const auto& [name, token] : variables_of(member(golden, "tokens"))) {
    tokens.emplace_back(name, token.as_text()->text);
  }
  const TemplateDict& conversations = *member(golden, "conversations").as_dict();
  const TemplateList& rows = *member(golden, "rows").as_sequence();
  ASSERT_GT(rows.size(), 200u);
  for (const TemplateValue& value : rows) {
    const TemplateDict& row = *value.as_dict();
    const std::string file = text_member(row, "template");
    const std::string conversation = text_member(row, "conversation");
    SCOPED_TRACE(file + ", " + conversation);
    const auto source = base::read_text_file(kGolden + "templates/" + file, kBytesMax);
    ASSERT_TRUE(source.has_value());
    const auto chat = ChatTemplate::parse(*source, file, tokens);
    ASSERT_TRUE(chat.has_value()) << chat.error().message;
    const TemplateValue& prompt = member(row, "add_generation_prompt");
    const ChatInputs inputs{.messages = member(conversations, conversation),
                            .tools = member(row, "tools"),
                            .documents = member(row, "documents"),
                            .add_generation_prompt = prompt.is_none() || *prompt.get_if<bool>(),
                            .extra = variables_of(member(row, "extra"))};
    const auto rendered = chat->render(inputs, fixed_time());
    if (row.find("error") != nullptr) {
      ASSERT_FALSE(rendered.has_value()) << rendered->text;
      EXPECT_TRUE(is_kind_of(rendered.error(), text_member(row, "error")))
          << rendered.error().message;
      if (rendered.error().kind == TemplateError::Kind::kRaised) {
        EXPECT_EQ(rendered.error().reason, text_member(row, "reason"));
      }
    } else {
      ASSERT_TRUE(rendered.has_value()) << rendered.error().message;
      EXPECT_EQ(rendered->text, text_member(row, "output"));
    }
  }
}

// The first line of this file has the variables of all templates. Each other is a template and what
// jinja2 made of it; see tools/check_templates_with_jinja2.py, which writes the file and runs this
// test with longer ones.
TEST(ChatTemplateGolden, RandomTemplates) {
  const char* path = std::getenv("INGOT_TEMPLATE_CASES");
  if (path == nullptr) path = INGOT_SOURCE_DIR "/tests/golden/text/random_templates.jsonl";
  const auto text = base::read_text_file(path, kBytesMax);
  ASSERT_TRUE(text.has_value());
  const size_t first_end = text->find('\n');
  const auto variables = TemplateValue::parse_json(text->substr(0, first_end), "variables");
  ASSERT_TRUE(variables.has_value()) << variables.error().message;
  size_t num_cases = 0;
  size_t num_failures = 0;
  size_t num_unsupported = 0;
  for (size_t begin = first_end + 1; begin < text->size() && num_failures < 20;) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    const auto value = TemplateValue::parse_json(text->substr(begin, end - begin), "case");
    ASSERT_TRUE(value.has_value()) << value.error().message;
    begin = end + 1;
    ++num_cases;
    const TemplateDict& row = *value->as_dict();
    const auto rendered = render_text(text_member(row, "template"), *variables);
    const bool should_fail = row.find("error") != nullptr;
    if (rendered ? !should_fail && rendered->text == text_member(row, "output") : should_fail) {
      continue;
    }
    if (!rendered && rendered.error().kind == TemplateError::Kind::kUnsupported) {
      ++num_unsupported;
      continue;
    }
    ++num_failures;
    ADD_FAILURE() << "template: " << text_member(row, "template")
                  << "\nexpected: " << (should_fail ? "error " : "") << text_member(row, "output")
                  << text_member(row, "error")
                  << "\ngot: " << (rendered ? rendered->text : "error " + rendered.error().reason);
  }
  std::printf("%zu cases, %zu differ, %zu not supported\n", num_cases, num_failures,
              num_unsupported);
}

}  // namespace
}  // namespace ingot::text
