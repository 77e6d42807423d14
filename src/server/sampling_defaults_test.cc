#include "server/sampling_defaults.h"

#include <gtest/gtest.h>

#include "base/output_file.h"
#include "base/scratch_directory.h"

namespace ingot::server {
namespace {

class SamplingDefaultsFile : public testing::Test {
 protected:
  std::string error_of(std::string_view text) {
    EXPECT_TRUE(base::write_text_file(scratch_ / "generation_config.json", text));
    const auto defaults = SamplingDefaults::load(scratch_.path());
    if (defaults) return "none";
    EXPECT_TRUE(defaults.error().message.contains("generation_config.json"));
    return defaults.error().message;
  }

  base::ScratchDirectory scratch_;
};

TEST_F(SamplingDefaultsFile, OpenAIsWithoutAFile) {
  const SamplingDefaults defaults = SamplingDefaults::load(scratch_.path()).value();
  EXPECT_EQ(defaults.temperature, 1);
  EXPECT_EQ(defaults.top_p, 1);
  EXPECT_EQ(defaults.top_k, 0);
  EXPECT_EQ(defaults.min_p, 0);
  EXPECT_EQ(defaults.repetition_penalty, 1);
}

TEST_F(SamplingDefaultsFile, TheModelsOwn) {
  EXPECT_EQ(error_of(R"({"do_sample": true, "temperature": 0.7, "top_p": 0.95, "top_k": 20,
                         "min_p": 0.05, "repetition_penalty": 1.05, "eos_token_id": [1, 2]})"),
            "none");
  const SamplingDefaults defaults = SamplingDefaults::load(scratch_.path()).value();
  EXPECT_EQ(defaults.temperature, 0.7);
  EXPECT_EQ(defaults.top_p, 0.95);
  EXPECT_EQ(defaults.top_k, 20);
  EXPECT_EQ(defaults.min_p, 0.05);
  EXPECT_EQ(defaults.repetition_penalty, 1.05);
  EXPECT_EQ(error_of(R"({"temperature": null, "top_k": -1})"), "none");
  EXPECT_EQ(SamplingDefaults::load(scratch_.path()).value().top_k, 0);
}

TEST_F(SamplingDefaultsFile, WhatIsWrongIsNamed) {
  EXPECT_TRUE(error_of("[]").ends_with(": expected a JSON object"));
  EXPECT_TRUE(error_of("{").contains("not valid JSON"));
  EXPECT_TRUE(error_of(R"({"top_p": "1"})").ends_with(": top_p is \"1\"; it must be a number"));
  EXPECT_TRUE(error_of(R"({"top_p": 0})")
                  .ends_with(": top_p is 0; it must be above 0 and at most "
                             "1"));
  EXPECT_TRUE(error_of(R"({"temperature": -1})").contains(": temperature is -1;"));
}

}  // namespace
}  // namespace ingot::server
