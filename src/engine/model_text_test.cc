#include "engine/model_text.h"

#include <algorithm>

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "base/output_file.h"
#include "base/scratch_directory.h"
#include "text/tokenizer_fixture.h"

namespace ingot::engine {
namespace {

class ModelTextFiles : public testing::Test {
 protected:
  void write(const char* name, std::string_view text) {
    EXPECT_TRUE(base::write_text_file(scratch_ / name, text));
  }
  void write_tokenizer() {
    write("tokenizer.json", base::json::serialize(text::small_glm_tokenizer_json()));
  }

  // "code: subject message" of each finding.
  std::vector<std::string> findings(const model::ModelConfig& config) {
    std::vector<std::string> lines;
    for (const model::Finding& finding :
         ModelText::load(scratch_.path()).value().compare_with(config)) {
      lines.push_back(finding.code + ": " + finding.subject + " " + finding.message);
    }
    return lines;
  }

  static model::ModelConfig config_of(int64_t vocab_size, std::vector<int64_t> eos) {
    model::ModelConfig config;
    config.vocab_size = vocab_size;
    config.eos_token_ids = std::move(eos);
    return config;
  }

  base::ScratchDirectory scratch_;
};

using Lines = std::vector<std::string>;

TEST_F(ModelTextFiles, WhatFitsTogether) {
  write_tokenizer();
  write("chat_template.jinja", "[gMASK]<sop>{{ '<|user|>' + messages[0].content }}<|assistant|>");
  EXPECT_EQ(findings(config_of(277, {260, 264})), Lines{});
}

TEST_F(ModelTextFiles, SizesAndEndsThatDisagree) {
  write_tokenizer();
  EXPECT_EQ(
      findings(config_of(288, {260})),
      Lines{"ids_without_token: tokenizer.json 11 of the model's 288 ids stand for no token"});
  EXPECT_EQ(
      findings(config_of(277, {'a'})),
      Lines{"end_of_sequence_is_text: eos_token_id 97 is no control token of tokenizer.json, so "
            "ordinary text could end an answer"});
  EXPECT_EQ(findings(config_of(277, {})).size(), 1u);
  EXPECT_EQ(findings(config_of(276, {260})),
            Lines{"tokenizer_too_large: tokenizer.json has ids up to 276, and the model only 276 "
                  "embedding rows"});
}

// A marker that is no token would reach the model as letters, and nobody would notice.
TEST_F(ModelTextFiles, MarkersThatTheTokenizerLacks) {
  write_tokenizer();
  write("chat_template.jinja",
        "{{ '<|im_start|>' }}user<|user|>{% if tools %}<｜tool▁calls｜>{% endif %}a < b |> c");
  EXPECT_EQ(
      findings(config_of(277, {260})),
      (Lines{"marker_is_text: chat_template writes <|im_start|>, which is no control token of "
             "tokenizer.json",
             "marker_is_text: chat_template writes <｜tool▁calls｜>, which is no control token "
             "of tokenizer.json"}));
}

TEST_F(ModelTextFiles, SpecialTokensThatNobodyGives) {
  write_tokenizer();
  write("chat_template.jinja", "{{ bos_token }}{{ eos_token }}{{ messages }}");
  write("tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  EXPECT_EQ(findings(config_of(277, {260})),
            Lines{"special_token_undefined: chat_template reads bos_token, which "
                  "tokenizer_config.json does not give"});
  write("tokenizer_config.json",
        R"({"eos_token": "<|eot|>", "bos_token": {"content": "[gMASK]"}})");
  EXPECT_EQ(
      findings(config_of(277, {260})),
      Lines{"special_token_is_text: tokenizer_config.json eos_token is \"<|eot|>\", which is no "
            "control token of tokenizer.json"});
  write("tokenizer_config.json", R"({"eos_token": "<|user|>", "bos_token": "[gMASK]"})");
  EXPECT_EQ(
      findings(config_of(277, {260})),
      Lines{"end_of_sequence_differs: tokenizer_config.json eos_token \"<|user|>\" is id 264, at "
            "which config.json ends no answer"});
}

TEST_F(ModelTextFiles, AddedTokensThatOnlyTheConfigHas) {
  write_tokenizer();
  const auto error = [&](std::string_view entry) {
    write("tokenizer_config.json", "{\"added_tokens_decoder\": {" + std::string(entry) + "}}");
    const auto tokenizer = load_tokenizer(scratch_.path());
    return tokenizer ? "fine" : tokenizer.error().message;
  };
  EXPECT_EQ(error(R"("264": {"content": "<|user|>"})"), "fine");
  EXPECT_TRUE(error(R"("264": {"content": "<|new|>"})")
                  .contains("gives \"<|new|>\" the id 264, and tokenizer.json does not"));
  EXPECT_TRUE(error(R"("265": {"content": "<|user|>"})").contains("the id 265"));
}

TEST_F(ModelTextFiles, WhatIsMissing) {
  const auto none = ModelText::load(scratch_.path());
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(none.error().message.contains("tokenizer.json: missing")) << none.error().message;
  write_tokenizer();
  EXPECT_FALSE(ModelText::load(scratch_.path()).value().chat_template.has_value());
  write("chat_template.jinja", "{% for x %}");
  EXPECT_FALSE(ModelText::load(scratch_.path()).has_value());
}

}  // namespace
}  // namespace ingot::engine
