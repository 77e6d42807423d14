#include "base/provenance.h"

#include <string>

#include <gtest/gtest.h>

#include "base/build_info.h"
#include "base/clock.h"

namespace ingot::base {
namespace {

std::string keys_of(const json::object& object) {
  std::string keys;
  for (const auto& member : object) keys += std::string(member.key()) + " ";
  return keys;
}

TEST(Provenance, BeginsEveryDocument) {
  const json::object document = result_document(
      "score", {.model_hash = "00ff00ff00ff00ff", .threads = 2, .seed = ~uint64_t{0}});
  EXPECT_EQ(keys_of(document), "schema provenance ");
  EXPECT_EQ(document.at("schema").as_string(), "ingot.score/1");
  const json::object& provenance = document.at("provenance").as_object();
  EXPECT_EQ(keys_of(provenance), "commit build processor threads model_hash seed time ");
  EXPECT_EQ(provenance.at("commit").as_string(), build_info().commit);
  EXPECT_EQ(provenance.at("threads").as_int64(), 2);
  EXPECT_EQ(provenance.at("model_hash").as_string(), "00ff00ff00ff00ff");
  EXPECT_EQ(provenance.at("seed").as_uint64(), ~uint64_t{0});
}

TEST(Provenance, LeavesOutWhatWasNotUsed) {
  const json::object document =
      result_document("bench", {.model_hash = "", .threads = 1, .seed = {}});
  EXPECT_EQ(keys_of(document.at("provenance").as_object()), "commit build processor threads time ");
}

TEST(Provenance, SaysThatAcceptanceWasSimulated) {
  const json::object document =
      result_document("bench", {.threads = 1, .simulated_acceptance = {0.75, 0.5}, .seed = {}});
  const json::object& provenance = document.at("provenance").as_object();
  EXPECT_EQ(provenance.at("simulated_acceptance"), (json::array{0.75, 0.5}));
}

TEST(Provenance, ReadsBack) {
  const json::value document =
      result_document("bench", {.model_hash = "", .threads = 1, .seed = {}});
  const auto parsed = parse_json(pretty_json(document), "source");
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  EXPECT_EQ(*parsed, document);
}

TEST(Provenance, TimeIsUtcInIsoForm) {
  const std::string time = utc_timestamp();
  const std::string form = "dddd-dd-ddTdd:dd:ddZ";
  ASSERT_EQ(time.size(), form.size()) << time;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == 'd') {
      EXPECT_TRUE(time[i] >= '0' && time[i] <= '9') << time;
    } else {
      EXPECT_EQ(time[i], form[i]) << time;
    }
  }
}

}  // namespace
}  // namespace ingot::base
