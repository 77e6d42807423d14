#include "text/tokenizer.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/scratch_directory.h"
#include "text/tokenizer_fixture.h"

namespace ingot::text {
namespace {

using Ids = std::vector<int32_t>;

std::filesystem::path golden_tokenizer(std::string_view name) {
  return std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden/text" /
         (std::string(name) + "_tokenizer");
}

// The documents of a file that has one a line.
std::vector<base::json::value> json_lines(const std::filesystem::path& file) {
  const std::string text = base::read_text_file(file, 1 << 20).value();
  std::vector<base::json::value> documents;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
    const std::string line = text.substr(begin, text.find('\n', begin) - begin);
    documents.push_back(base::parse_json(line, file.string()).value());
  }
  return documents;
}

Ids ids_of(const base::json::value& array) {
  Ids ids;
  for (const base::json::value& id : array.as_array()) {
    ids.push_back(static_cast<int32_t>(id.as_int64()));
  }
  return ids;
}

class GoldenTokenizer : public testing::TestWithParam<const char*> {
 protected:
  const std::filesystem::path folder_ = golden_tokenizer(GetParam());
  const Tokenizer tokenizer_ = Tokenizer::load(folder_ / "tokenizer.json").value();
};

// What Hugging Face's tokenizers give: tools/make_golden_tokenizers.py wrote it down.
TEST_P(GoldenTokenizer, EncodesAsHuggingFace) {
  const auto rows = json_lines(folder_ / "encodings.jsonl");
  ASSERT_GT(rows.size(), 300u);
  for (const base::json::value& row : rows) {
    const std::string_view text = row.at(0).as_string();
    EXPECT_EQ(tokenizer_.encode(text, ControlTokens::kRecognise).value(), ids_of(row.at(1)))
        << base::json::serialize(row.at(0));
    EXPECT_EQ(tokenizer_.encode(text, ControlTokens::kAsText).value(), ids_of(row.at(2)))
        << base::json::serialize(row.at(0));
  }
}

TEST_P(GoldenTokenizer, DecodesAsHuggingFace) {
  for (const base::json::value& row : json_lines(folder_ / "decodings.jsonl")) {
    const Ids ids = ids_of(row.at(0));
    EXPECT_EQ(tokenizer_.decode(ids, SpecialTokens::kKeep).value(), row.at(1).as_string());
    EXPECT_EQ(tokenizer_.decode(ids, SpecialTokens::kSkip).value(), row.at(2).as_string());
  }
}

// Where nothing is normalized.
TEST(Tokenizer, EncodedTextDecodesToItself) {
  for (const char* name : {"glm", "deepseek"}) {
    const auto folder = golden_tokenizer(name);
    const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.json").value();
    for (const base::json::value& row : json_lines(folder / "encodings.jsonl")) {
      for (const size_t i : {1, 2}) {
        EXPECT_EQ(tokenizer.decode(ids_of(row.at(i)), SpecialTokens::kKeep).value(),
                  row.at(0).as_string());
      }
    }
  }
}

// A prompt that is data altogether is ordinary text; one without data has all markers recognised.
TEST_P(GoldenTokenizer, PromptsOfOneKind) {
  for (const base::json::value& row : json_lines(folder_ / "encodings.jsonl")) {
    PromptText prompt{.text = std::string(row.at(0).as_string())};
    EXPECT_EQ(tokenizer_.encode(prompt).value(), ids_of(row.at(1)));
    if (!prompt.text.empty()) prompt.data = {{0, prompt.text.size()}};
    EXPECT_EQ(tokenizer_.encode(prompt).value(), ids_of(row.at(2)));
  }
}

// Hundreds of kilobytes of one thing, each of which some implementation takes quadratic time for. A
// tokenizer that does would run into the time-out.
TEST_P(GoldenTokenizer, LongRunsOfOneThing) {
  for (const char* unit : {"a", " ", "1", "🚢", "\n", " \n", "\t ", "é", "\u0301", "中", "'", "!",
                           "<", "<|", "\x01", "\u0323\u0301", "ab"}) {
    std::string text;
    while (text.size() < 300'000) text += unit;
    for (const char* end : {"", "x"}) {
      const auto ids = tokenizer_.encode(text + end, ControlTokens::kRecognise);
      ASSERT_TRUE(ids.has_value()) << unit << ": " << ids.error().message;
      EXPECT_GT(ids->size(), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Text, GoldenTokenizer, testing::Values("glm", "deepseek", "nfkc"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Tokenizer, AWordOfTheVocabularyIsWholeOnlyWithIgnoreMerges) {
  base::json::object description = small_tokenizer_json();
  const Tokenizer ignoring = tokenizer_of(description);
  EXPECT_EQ(ignoring.encode("hello", ControlTokens::kAsText).value(), (Ids{259}));
  EXPECT_EQ(ignoring.encode("hellohe", ControlTokens::kAsText).value(), (Ids{258, 'o', 256}));
  description["model"].at("ignore_merges") = false;
  const Tokenizer merging = tokenizer_of(description);
  EXPECT_EQ(merging.encode("hello", ControlTokens::kAsText).value(), (Ids{258, 'o'}));
  EXPECT_EQ(merging.encode("hell", ControlTokens::kAsText).value(), (Ids{258}));
}

TEST(Tokenizer, MarkersInDataAreText) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  const auto encode = [&](std::string text, std::vector<TextSpan> data) {
    return tokenizer.encode(PromptText{std::move(text), std::move(data)}).value();
  };
  const Ids a_as_text = {'<', 'a', '>'};
  EXPECT_EQ(encode("<a>he<a>", {}), (Ids{260, 256, 260}));
  EXPECT_EQ(encode("<a>he<a>", {{3, 8}}), (Ids{260, 256, '<', 'a', '>'}));
  // A marker that data begins or ends in is none, and hides no shorter one.
  EXPECT_EQ(encode("<a>", {{0, 1}}), a_as_text);
  EXPECT_EQ(encode("<a>", {{2, 3}}), a_as_text);
  EXPECT_EQ(encode("<a>", {{1, 2}}), a_as_text);
  EXPECT_EQ(encode("<a><b>", {}), (Ids{262}));
  EXPECT_EQ(encode("<a><b>", {{5, 6}}), (Ids{260, '<', 'b', '>'}));
  EXPECT_EQ(encode("<a><b>", {{0, 1}}), (Ids{'<', 'a', '>', 261}));
  // The ends of data split no word.
  EXPECT_EQ(encode("hello<b>", {{1, 3}}), (Ids{259, 261}));
}

// A vocabulary may have its markers among the words.
TEST(Tokenizer, TextNeverBecomesAnAddedToken) {
  base::json::object description = small_tokenizer_json();
  description["added_tokens"].as_array().push_back(
      {{"id", 258}, {"content", "hell"}, {"special", true}});
  for (const bool ignore_merges : {true, false}) {
    description["model"].at("ignore_merges") = ignore_merges;
    const Tokenizer tokenizer = tokenizer_of(description);
    EXPECT_EQ(tokenizer.encode("hell", ControlTokens::kRecognise).value(), (Ids{258}));
    EXPECT_EQ(tokenizer.encode("hell", ControlTokens::kAsText).value(), (Ids{256, 257}));
  }
}

TEST(Tokenizer, NormalizedAddedTokensComeSecond) {
  base::json::object description = small_tokenizer_json();
  description["added_tokens"].at(2).as_object()["normalized"] = true;
  const Tokenizer tokenizer = tokenizer_of(description);
  EXPECT_EQ(tokenizer.encode("<a><b>", ControlTokens::kRecognise).value(), (Ids{260, 261}));
  description["added_tokens"].at(0).as_object()["normalized"] = true;
  description["added_tokens"].at(1).as_object()["normalized"] = true;
  EXPECT_EQ(tokenizer_of(description).encode("<a><b>", ControlTokens::kRecognise).value(),
            (Ids{262}));
}

TEST(Tokenizer, IdsMayHaveHoles) {
  base::json::object description = small_tokenizer_json();
  description["added_tokens"].at(2).at("id") = 1000;
  const Tokenizer tokenizer = tokenizer_of(description);
  EXPECT_EQ(tokenizer.vocabulary_size(), 1001);
  EXPECT_TRUE(tokenizer.has_token(1000));
  EXPECT_FALSE(tokenizer.has_token(999));
  EXPECT_FALSE(tokenizer.has_token(1001));
  EXPECT_FALSE(tokenizer.has_token(-1));
  EXPECT_EQ(tokenizer.token_bytes(999), "");
  for (const int32_t id : {999, 1001, -1, INT32_MAX, INT32_MIN}) {
    const auto text = tokenizer.decode(Ids{id}, SpecialTokens::kKeep);
    ASSERT_FALSE(text.has_value());
    EXPECT_TRUE(text.error().message.starts_with("token " + std::to_string(id)));
  }
}

TEST(Tokenizer, LooksUpTokens) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  EXPECT_EQ(tokenizer.token_bytes(32), " ");
  ASSERT_NE(tokenizer.added_token(262), nullptr);
  EXPECT_EQ(tokenizer.added_token(262)->content, "<a><b>");
  EXPECT_EQ(tokenizer.added_token(259), nullptr);
  ASSERT_NE(tokenizer.added_token("<a>"), nullptr);
  EXPECT_EQ(tokenizer.added_token("<a>")->id, 260);
  EXPECT_EQ(tokenizer.added_token("hello"), nullptr);
  EXPECT_TRUE(tokenizer.prefix_ids().empty());
  EXPECT_EQ(tokenizer.added_tokens().size(), 3u);

  const Tokenizer deepseek =
      Tokenizer::load(golden_tokenizer("deepseek") / "tokenizer.json").value();
  ASSERT_NE(deepseek.added_token("<｜begin▁of▁sentence｜>"), nullptr);
  EXPECT_EQ(deepseek.added_token("<｜begin▁of▁sentence｜>")->id, 0);
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  const auto ids = tokenizer.encode("hello \xC3(", ControlTokens::kAsText);
  ASSERT_FALSE(ids.has_value());
  EXPECT_TRUE(ids.error().message.starts_with("byte 6 of the text is not UTF-8"));
}

TEST(Tokenizer, RefusesAVocabularyWithoutAByte) {
  base::json::object description = small_tokenizer_json();
  description["model"].at("vocab").as_object().erase("Ġ");
  const auto tokenizer = Tokenizer::parse(base::json::serialize(description), "file");
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_TRUE(
      tokenizer.error().message.starts_with("file: model.vocab has no token \"Ġ\" for byte 0x20"))
      << tokenizer.error().message;
}

TEST(Tokenizer, RefusesAByteThatIsAnAddedToken) {
  base::json::object description = small_tokenizer_json();
  description["added_tokens"].as_array().push_back({{"id", 'x'}, {"content", "x"}});
  const auto tokenizer = Tokenizer::parse(base::json::serialize(description), "file");
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_TRUE(tokenizer.error().message.contains("\"x\" is also the only token of a byte"));
}

TEST(Tokenizer, PassesOnThatAPatternGaveUp) {
  base::json::object description = small_tokenizer_json();
  description["pre_tokenizer"].at("pretokenizers").at(0).at("pattern").at("Regex") =
      "a+a+a+a+a+a+[bc]";
  const auto ids = tokenizer_of(description).encode(std::string(3000, 'a'), ControlTokens::kAsText);
  ASSERT_FALSE(ids.has_value());
  EXPECT_TRUE(ids.error().message.contains("gave up")) << ids.error().message;
}

TEST(Tokenizer, NamesTheFile) {
  const base::ScratchDirectory directory;
  const auto tokenizer = Tokenizer::load(directory / "tokenizer.json");
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_TRUE(tokenizer.error().message.contains((directory / "tokenizer.json").string()));
}

}  // namespace
}  // namespace ingot::text
