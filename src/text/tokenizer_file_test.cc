#include "text/tokenizer_file.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "text/tokenizer_fixture.h"

namespace ingot::text {
namespace {

namespace json = base::json;

std::string refusal(const json::object& description) {
  const auto file = parse_tokenizer_file(json::serialize(description), "file");
  if (file) return "accepted";
  EXPECT_TRUE(file.error().message.starts_with("file: ")) << file.error().message;
  EXPECT_FALSE(file.error().message.contains('\n')) << file.error().message;
  return file.error().message;
}

// The small file with the value at a path like "/model/merges/0" set.
json::object with(std::string_view path, std::string_view value) {
  json::value description = small_tokenizer_json();
  json::value* place = &description;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view key = path.substr(1, end - 1);
    place = place->is_array() ? &place->as_array().at(static_cast<size_t>(key.front() - '0'))
                              : &place->as_object()[key];
    path.remove_prefix(end);
  }
  *place = base::parse_json(value, "value").value();
  return description.as_object();
}

void expect_refused(std::string_view path, std::string_view value, std::string_view because) {
  const std::string message = refusal(with(path, value));
  EXPECT_TRUE(message.contains(because)) << message << "\nshould say: " << because;
}

TEST(TokenizerFile, ReadsTheFields) {
  const auto file = parse_tokenizer_file(json::serialize(small_tokenizer_json()), "file");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->normalization, Normalization::kNone);
  EXPECT_EQ(file->split_patterns, std::vector<std::string>{R"(\p{L}+|\s+|[^\s\p{L}]+)"});
  EXPECT_TRUE(file->ignore_merges);
  EXPECT_EQ(file->vocabulary.size(), 260u);
  ASSERT_EQ(file->merges.size(), 3u);
  EXPECT_EQ(file->merges[2].left, 256);
  EXPECT_EQ(file->merges[2].right, 257);
  EXPECT_EQ(file->merges[2].merged, 258);
  ASSERT_EQ(file->added_tokens.size(), 3u);
  EXPECT_EQ(file->added_tokens[0].content, "<a>");
  EXPECT_TRUE(file->added_tokens[0].special);
  EXPECT_FALSE(file->added_tokens[1].special);
}

TEST(TokenizerFile, AcceptsOtherWordsForTheSame) {
  for (const auto& [path, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"/normalizer", R"({"type": "NFC"})"},
           {"/normalizer", R"({"type": "Sequence", "normalizers": []})"},
           {"/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFKC"}]})"},
           {"/pre_tokenizer", R"({"type": "ByteLevel", "add_prefix_space": false})"},
           {"/post_processor", R"({"type": "ByteLevel", "trim_offsets": false})"},
           {"/post_processor",
            R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [], "special_tokens": {}})"},
           {"/post_processor",
            R"({"type": "TemplateProcessing", "pair": [],
                "single": [{"SpecialToken": {"id": "<a>"}}, {"Sequence": {"id": "A"}}],
                "special_tokens": {"<a>": {"id": "<a>", "ids": [260], "tokens": ["<a>"]}}})"},
           {"/truncation", R"({"max_length": 8})"},
           {"/padding", "{}"},
           {"/model/unk_token", R"("he")"},
           {"/model/dropout", "0"},
           {"/model/end_of_word_suffix", R"("")"},
           {"/model/merges", "[]"},
           {"/added_tokens", "null"}}) {
    EXPECT_EQ(refusal(with(path, value)), "accepted") << path << " " << value;
  }
}

TEST(TokenizerFile, RefusesWhatItDoesNotFollow) {
  expect_refused("/more", "1", "unknown key \"more\"");
  expect_refused("/version", R"("2.0")", "version is \"2.0\"");
  expect_refused("/normalizer", R"({"type": "Lowercase"})", "normalizer.type is \"Lowercase\"");
  expect_refused("/normalizer",
                 R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFC"}]})",
                 "has 2 members");
  expect_refused("/pre_tokenizer", "null", "pre_tokenizer is not an object");
  expect_refused("/pre_tokenizer", R"({"type": "Metaspace"})",
                 "pre_tokenizer.type is \"Metaspace\"");
  expect_refused("/pre_tokenizer", R"({"type": "ByteLevel"})", "add_prefix_space is \"true\"");
  expect_refused("/pre_tokenizer/pretokenizers/0/behavior", R"("Removed")",
                 "behavior is \"Removed\"");
  expect_refused("/pre_tokenizer/pretokenizers/0/pattern", R"({"String": " "})",
                 "unknown key \"String\"");
  expect_refused("/pre_tokenizer/pretokenizers", "[]", "has no ByteLevel");
  expect_refused("/decoder", "null", "decoder is not an object");
  expect_refused("/decoder", R"({"type": "Metaspace"})", "decoder.type is \"Metaspace\"");
  expect_refused("/post_processor",
                 R"({"type": "TemplateProcessing", "pair": [], "special_tokens": {},
                     "single": [{"SpecialToken": {"id": "<a>", "type_id": 0}}]})",
                 "post_processor.special_tokens.<a> is missing");
  expect_refused("/post_processor",
                 R"({"type": "TemplateProcessing", "pair": [],
                     "special_tokens": {"he": {"id": "he", "ids": [256], "tokens": ["he"]}},
                     "single": [{"SpecialToken": {"id": "he", "type_id": 0}}]})",
                 "puts id 256 in front, which is no added token");
  expect_refused("/post_processor",
                 R"({"type": "TemplateProcessing", "pair": [], "special_tokens": {},
                     "single": [{"Sequence": {"id": "A", "type_id": 0}},
                                {"SpecialToken": {"id": "<a>", "type_id": 0}}]})",
                 "adds tokens behind every text");
  expect_refused("/post_processor", R"({"type": "BertProcessing"})", "\"BertProcessing\"");
  expect_refused("/model/type", R"("WordPiece")", "model.type is \"WordPiece\"");
  expect_refused("/model/dropout", "0.1", "model.dropout");
  expect_refused("/model/byte_fallback", "true", "model.byte_fallback");
  expect_refused("/model/continuing_subword_prefix", R"("##")", "continuing_subword_prefix");
  expect_refused("/added_tokens/0/normalised", "true", "unknown key \"normalised\"");
}

TEST(TokenizerFile, RefusesMergesOfWhatIsNotInTheVocabulary) {
  expect_refused("/model/merges/0", R"(["h", "xyz"])",
                 "merges[0]: the vocabulary has no token \"xyz\"");
  expect_refused("/model/merges/1", R"("h o")", "merges[1]: the vocabulary has no token \"ho\"");
  for (const char* merge : {"1", "[]", R"(["h"])", R"(["h", 1])", R"("he")", R"("h e l")"}) {
    expect_refused("/model/merges/0", merge, "merges[0] is neither two strings nor");
  }
}

TEST(TokenizerFile, RefusesIdsThatAreNone) {
  for (const char* id : {"-1", "1.5", "\"1\"", "null", "16777216", "99999999999999999999"}) {
    expect_refused("/model/vocab/hello", id, "is not an id from 0 to 16777215");
  }
  expect_refused("/added_tokens/0/id", "-1", "is not an id from 0 to 16777215");
}

TEST(TokenizerFile, RefusesTwoTokensOfOneId) {
  expect_refused("/model/vocab/hello", "258", "id 258 is another token's too");
  expect_refused("/added_tokens/1/id", "260", R"("<b>" has id 260, which is that of "<a>")");
  expect_refused("/added_tokens/1/id", "259", R"("<b>" has id 259, which is that of "hello")");
}

TEST(TokenizerFile, RefusesATokenTwice) {
  expect_refused("/added_tokens/1/content", R"("<a>")", "\"<a>\" is added twice");
  expect_refused("/added_tokens/1/content", R"("hello")",
                 "has id 261 here and 259 in the vocabulary");
  const std::string text = R"({"model": {"type": "BPE", "vocab": {"a": 1, "a": 2}, "merges": []}})";
  const auto file = parse_tokenizer_file(text, "file");
  ASSERT_FALSE(file.has_value());
  EXPECT_TRUE(file.error().message.contains("key \"a\" appears twice")) << file.error().message;
}

TEST(TokenizerFile, RefusesAddedTokensThatCannotBeFound) {
  expect_refused("/added_tokens/0/content", R"("")", "has 0 bytes");
  expect_refused("/added_tokens/0/content", '"' + std::string(513, 'x') + '"', "has 513 bytes");
  json::object description = with("/normalizer", R"({"type": "NFC"})");
  description["added_tokens"].at(0).as_object()["normalized"] = true;
  EXPECT_TRUE(refusal(description).contains("to be found in normalized text"));
}

}  // namespace
}  // namespace ingot::text
