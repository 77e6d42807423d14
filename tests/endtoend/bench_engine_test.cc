// `ingot bench engine`: what it prints, what it refuses, and the kernels that it refuses to time.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "model/config_fixture.h"

namespace ingot::endtoend {
namespace {

namespace json = base::json;
using model::json_of;

class BenchEngine : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new base::ScratchDirectory;
    const Outcome synth =
        run_ingot({"synth", model(), "--config", "tiny", "--layers", "3", "--dtype", "bf16"});
    CHECK(synth.status == 0, synth.err);
  }
  static void TearDownTestSuite() { delete scratch_; }

  static std::string model() { return (*scratch_ / "model").string(); }

  // Short tests, with kernels of any speed.
  static Outcome bench(std::vector<std::string> options, const Start& start = {}) {
    std::vector<std::string> arguments = {"bench", "engine", model(), "--allow-slow-kernels"};
    for (const char* name : {"--decode", "--repetitions"}) {
      if (std::ranges::find(options, name) == options.end()) {
        arguments.insert(arguments.end(), {name, "2"});
      }
    }
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_ingot(arguments, start);
  }

  static std::string refusal(const std::vector<std::string>& options) {
    const Outcome outcome = bench(options);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    return outcome.err;
  }

  static base::ScratchDirectory* scratch_;
};

base::ScratchDirectory* BenchEngine::scratch_ = nullptr;

TEST_F(BenchEngine, PrintsProbesAndARowATest) {
  const Outcome outcome =
      bench({"--prefill", "40,8", "--depth", "20,0", "--batch", "1,3", "--threads", "2"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* text : {"probe ", "GB/s", "GMAC/s, each ", "tokens/s", "share", "prefill 40 ",
                           "prefill 8 ", "decode 2 ", "decode 2 x 3 ", "decode 2 at 20 ",
                           "decode 2 x 3 at 20 ", "bf16 x bf16 ", "attention ", "medians of 2"}) {
    EXPECT_TRUE(outcome.out.contains(text)) << text << "\n" << outcome.out;
  }
  EXPECT_FALSE(outcome.out.contains("speculation"));
}

TEST_F(BenchEngine, JsonSaysWhereEveryFigureComesFrom) {
  const Outcome outcome =
      bench({"--prefill", "40", "--max-step-tokens", "16", "--batch", "3", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json::object document = json_of(outcome.out).get_object();
  EXPECT_EQ(document.at("schema"), "ingot.bench_engine/1");
  EXPECT_EQ(document.at("clock"), "wall");
  const json::object& provenance = document.at("provenance").as_object();
  for (const char* key :
       {"commit", "processor", "threads", "target", "model_hash", "seed", "time"}) {
    EXPECT_TRUE(provenance.contains(key)) << key;
  }
  EXPECT_EQ(provenance.at("activations"), "bf16");
  const json::array& tests = document.at("tests").as_array();
  ASSERT_EQ(tests.size(), 2u);
  const json::object& prefill = tests[0].as_object();
  EXPECT_EQ(prefill.at("kind"), "prefill");
  EXPECT_EQ(prefill.at("steps"), 3) << "40 tokens, 16 a step";
  const json::object& decode = tests[1].as_object();
  EXPECT_EQ(decode.at("batch"), 3);
  EXPECT_EQ(decode.at("tokens_per_second").at("samples").as_array().size(), 2u);
  // Two layers with experts, of which three rows choose four each.
  EXPECT_GE(decode.at("distinct_experts_per_step").as_double(), 2 * 4);
  EXPECT_LE(decode.at("distinct_experts_per_step").as_double(), 2 * 12);
  const double share = decode.at("share_of_floor").as_double();
  EXPECT_GT(share, 0);
  // Both of the median time: a step of three sequences gives three tokens.
  EXPECT_NEAR(share,
              3 / (decode.at("seconds_per_step").as_double() *
                   decode.at("floor").at("tokens_per_second").as_double()),
              1e-9 * share);
  EXPECT_TRUE(decode.at("macs_per_step").as_object().contains("bf16 x bf16"));
  const json::array& probes = document.at("probes").as_array();
  ASSERT_GE(probes.size(), 3u);
  size_t turns = 0;
  for (const json::value& probe : probes) {
    EXPECT_GT(probe.at("per_second").at("median").as_double(), 0);
    turns = std::max(turns, probe.at("per_second").at("samples").as_array().size());
  }
  EXPECT_GE(turns, 20u);
  EXPECT_EQ(document.at("kernels").as_array().front().at("operation"), "linear");
}

TEST_F(BenchEngine, CountsProcessorTimeWhereItIsAskedTo) {
  const Outcome table = bench({"--prefill", "8", "--cpu-time", "--threads", "1"});
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_TRUE(table.out.contains("times are processor time")) << table.out;
  EXPECT_FALSE(table.out.contains("of the processor time of their threads"));
  const Outcome outcome = bench({"--prefill", "8", "--cpu-time", "--threads", "1", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json_of(outcome.out).at("clock"), "cpu");
}

TEST_F(BenchEngine, SpeculationIsTimedWhereItIsAskedFor) {
  const Outcome outcome = bench({"--prefill", "0", "--speculative-tokens", "2",
                                 "--simulate-acceptance", "0.8,0.5", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json::object document = json_of(outcome.out).get_object();
  EXPECT_EQ(document.at("tests").as_array().size(), 1u);
  const json::array& rows = document.at("speculation").as_array();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_DOUBLE_EQ(rows[0].at("accepted_length").as_double(), 1.8);
  EXPECT_DOUBLE_EQ(rows[1].at("accepted_length").as_double(), 2.2);
  const auto median = [&](const char* key) { return rows[1].at(key).at("median").as_double(); };
  EXPECT_NEAR(rows[1].at("gain").as_double(),
              2.2 * median("plain_seconds") / (median("verify_seconds") + median("draft_seconds")),
              1e-9);
}

TEST_F(BenchEngine, ReferenceKernelsAreRefusedUnlessTheyAreAskedFor) {
  const Start reference{.environment = {{"INGOT_TARGETS", "reference"}}};
  const std::vector<std::string> arguments = {
      "bench", "engine", model(), "--prefill", "8", "--decode", "0", "--repetitions", "1"};
  const Outcome refused = run_ingot(arguments, reference);
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
  // The largest share of this model is its linear layers'; of them the largest matrix leads.
  EXPECT_TRUE(refused.err.starts_with("ingot: error: ")) << refused.err;
  for (const char* text : {" bf16 ", " runs on a reference kernel (", "% of a token's bytes",
                           "and ", " more; --allow-slow-kernels runs it all the same"}) {
    EXPECT_TRUE(refused.err.contains(text)) << text << "\n" << refused.err;
  }
  std::vector<std::string> allowed = arguments;
  allowed.emplace_back("--allow-slow-kernels");
  EXPECT_EQ(run_ingot(allowed, reference).status, 0);
  // Who runs a model is told at most.
  write_file(*scratch_ / "ids.json", "[1, 2, 3]");
  const Outcome generated = run_ingot(
      {"generate", model(), "--token-ids", (*scratch_ / "ids.json").string(), "--max-tokens", "1"},
      reference);
  EXPECT_EQ(generated.status, 0) << generated.err;
}

TEST_F(BenchEngine, BadArgumentsAreNamed) {
  EXPECT_TRUE(refusal({"--prefill", "0", "--decode", "0"}).contains("nothing to measure"));
  EXPECT_TRUE(refusal({"--prefill", "8,0"}).contains("--prefill: 0 leaves these tests out"));
  EXPECT_TRUE(refusal({"--prefill", "some"}).contains("--prefill"));
  EXPECT_TRUE(refusal({"--batch", "0"}).contains("--batch"));
  EXPECT_TRUE(refusal({"--depth", "-1"}).contains("--depth"));
  EXPECT_TRUE(refusal({"--depth", "5000"}).contains("and the model has 4,096"));
  EXPECT_TRUE(refusal({"--repetitions", "0"}).contains("--repetitions"));
  EXPECT_TRUE(refusal({"--simulate-acceptance", "0.5"}).contains("no more numbers than drafts"));
  EXPECT_TRUE(refusal({"--speculative-tokens", "1", "--simulate-acceptance", "1.5"})
                  .contains("expected numbers from 0 to 1"));
  EXPECT_TRUE(refusal({"--cpu-time", "--threads", "2"}).contains("add --threads 1"));
  EXPECT_TRUE(refusal({"--kv-dtype", "int4"}).contains("--kv-dtype"));
  const Outcome no_kind = run_ingot({"bench"});
  EXPECT_EQ(no_kind.status, 2);
  EXPECT_TRUE(no_kind.err.contains("ingot bench --help")) << no_kind.err;
  const Outcome missing = run_ingot({"bench", "engine", (*scratch_ / "absent").string()});
  EXPECT_EQ(missing.status, 2);
}

TEST_F(BenchEngine, InspectShowsTheSameLedger) {
  const Outcome inspected = run_ingot({"inspect", model(), "--kernels", "--json"});
  ASSERT_EQ(inspected.status, 0) << inspected.err;
  const json::object document = json_of(inspected.out).get_object();
  double bytes = 0;
  double macs = 0;
  for (const json::value& row : document.at("kernels").as_array()) {
    bytes += row.at("bytes_share").as_double();
    macs += row.at("macs_share").as_double();
    EXPECT_FALSE(row.at("kernel").as_string().empty());
    EXPECT_EQ(row.at("tuning"), "heuristic");
  }
  EXPECT_NEAR(bytes, 1, 1e-9);
  EXPECT_NEAR(macs, 1, 1e-9);
  const Outcome table = run_ingot({"inspect", model(), "--kernels"});
  for (const char* text : {"operation", "macs", "target", "read by reference kernels"}) {
    EXPECT_TRUE(table.out.contains(text)) << text;
  }
}

}  // namespace
}  // namespace ingot::endtoend
