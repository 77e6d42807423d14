#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/mapped_file.h"
#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "tensor/npy.h"

namespace ingot::endtoend {
namespace {

const std::filesystem::path kCheckpoint =
    std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden/oracle_checkpoint";

base::json::value expected(const char* key) {
  const auto path = kCheckpoint / "expected.json";
  const std::string text = base::read_text_file(path, 1 << 20).value();
  return base::parse_json(text, path.string()).value().at(key);
}

base::json::value document(const Outcome& outcome) {
  return base::parse_json(outcome.out, "output").value();
}

// A checkpoint that numpy wrote and an independent implementation computed, through the program.
TEST(OracleCheckpoint, ScoreGivesItsLogitsAndDrafts) {
  const base::ScratchDirectory scratch;
  const std::string logits = (scratch / "logits.npy").string();
  const Outcome outcome =
      run_ingot({"score", kCheckpoint.string(), "--token-ids", (kCheckpoint / "ids.json").string(),
                 "--logits", logits, "--draft", "4", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const tensor::NpyArray want = tensor::read_npy(kCheckpoint / "logits.npy").value();
  const tensor::NpyArray got = tensor::read_npy(logits).value();
  ASSERT_EQ(got.shape, want.shape);
  for (size_t i = 0; i < want.values.size(); ++i) {
    ASSERT_LT(std::abs(got.values[i] - want.values[i]), 5e-5f) << i;
  }
  const base::json::value result = document(outcome);
  EXPECT_EQ(result.at("draft"), expected("mtp_draft"));
  EXPECT_EQ(result.at("sequences").at(0).at("next_tokens").at(0).at("id"), expected("next"));
}

TEST(OracleCheckpoint, SeveralSequencesGiveAListOfDrafts) {
  const base::ScratchDirectory scratch;
  const std::string ids = (scratch / "ids.json").string();
  write_file(ids, "[[1, 2, 3], [4]]");
  const Outcome outcome =
      run_ingot({"score", kCheckpoint.string(), "--token-ids", ids, "--draft", "2", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const base::json::value drafts = document(outcome).at("draft");
  ASSERT_EQ(drafts.as_array().size(), 2U);
  EXPECT_EQ(drafts.at(0).as_array().size(), 2U);
  EXPECT_EQ(drafts.at(1).as_array().size(), 2U);
}

TEST(OracleCheckpoint, DraftsNeedAnMtpLayer) {
  const base::ScratchDirectory scratch;
  const std::string model = (scratch / "model").string();
  const std::string ids = (scratch / "ids.json").string();
  write_file(ids, "[1, 2]");
  ASSERT_EQ(
      run_ingot({"synth", model, "--config", "tiny", "--layers", "2", "--mtp", "none"}).status, 0);
  const Outcome outcome = run_ingot({"score", model, "--token-ids", ids, "--draft", "1"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(outcome.err.contains("drafts need the model's MTP layer")) << outcome.err;
}

}  // namespace
}  // namespace ingot::endtoend
