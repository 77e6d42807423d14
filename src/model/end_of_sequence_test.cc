#include "model/end_of_sequence.h"

#include <gtest/gtest.h>

#include "base/output_file.h"
#include "base/scratch_directory.h"

namespace ingot::model {
namespace {

using Ids = std::vector<int64_t>;

TEST(EndOfSequence, GenerationConfigAddsToTheConfig) {
  const base::ScratchDirectory scratch;
  EXPECT_EQ(further_end_of_sequence(scratch.path(), {1}, 100).value(), Ids{});
  const auto further = [&](std::string_view text) -> base::Result<Ids> {
    EXPECT_TRUE(base::write_text_file(scratch / "generation_config.json", text));
    return further_end_of_sequence(scratch.path(), {1, 5}, 100);
  };
  EXPECT_EQ(further(R"({"eos_token_id": [1, 5]})").value(), Ids{});
  EXPECT_EQ(further(R"({"eos_token_id": [5, 7, 1, 9]})").value(), (Ids{7, 9}));
  EXPECT_EQ(further(R"({"eos_token_id": 99})").value(), Ids{99});
  EXPECT_EQ(further(R"({"temperature": 1.0, "eos_token_id": null})").value(), Ids{});
  for (const char* text : {R"({"eos_token_id": 100})", R"({"eos_token_id": ["x"]})", "[]", "{"}) {
    const auto result = further(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_TRUE(result.error().message.contains("generation_config.json")) << text;
  }
}

}  // namespace
}  // namespace ingot::model
