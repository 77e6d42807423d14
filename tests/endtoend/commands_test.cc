// What the commands do when nothing is wrong: from a made-up model to tokens.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "model/config_fixture.h"
#include "tensor/npy.h"

namespace ingot::endtoend {
namespace {

namespace fs = std::filesystem;
namespace json = base::json;
using model::json_of;

constexpr int64_t kVocabulary = 160;

class Commands : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new base::ScratchDirectory;
    write_file(*scratch_ / "small.json", json::serialize(model::small_config()));
    const Outcome synth =
        run_ingot({"synth", model(), "--config", (*scratch_ / "small.json").string(), "--dtype",
                   "f32", "--seed", "5"});
    CHECK(synth.status == 0, synth.err);
    CHECK(synth.out.contains("parameters of random weights in f32"), synth.out);
    CHECK(synth.err.empty(), synth.err);
  }
  static void TearDownTestSuite() { delete scratch_; }

  static std::string model() { return (*scratch_ / "model").string(); }
  static std::string path(const char* name) { return (*scratch_ / name).string(); }

  static std::string ids_file(std::string_view text) {
    write_file(*scratch_ / "ids.json", text);
    return path("ids.json");
  }

  // The JSON document of a run that succeeds and says nothing else.
  static json::object document(std::vector<std::string> arguments, const Start& start = {}) {
    arguments.emplace_back("--json");
    const Outcome outcome = run_ingot(arguments, start);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return json_of(outcome.out).get_object();
  }

  static std::vector<int64_t> generated(std::vector<std::string> options) {
    options.insert(options.begin(), {"generate", model(), "--token-ids", ids_file("[1, 2, 3]")});
    std::vector<int64_t> ids;
    const json::object result = document(options);
    for (const auto& id : result.at("token_ids").as_array()) ids.push_back(id.as_int64());
    return ids;
  }

  // A model with the same weights and another config.
  static std::string with_config(const char* name, const json::object& config) {
    const fs::path directory = *scratch_ / name;
    fs::create_directory(directory);
    fs::create_symlink(fs::path(model()) / "model.safetensors", directory / "model.safetensors");
    write_file(directory / "config.json", json::serialize(config));
    return directory.string();
  }

  static base::ScratchDirectory* scratch_;
};

base::ScratchDirectory* Commands::scratch_ = nullptr;

TEST_F(Commands, InspectExplainsAModel) {
  const Outcome text = run_ingot({"inspect", model()});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.err, "");
  for (const char* words :
       {"glm_moe_dsa: 3 layers (1 dense, 2 MoE), 4 experts, top 2, 1 shared, MTP", "routed experts",
        "f32", "config.json and tensors fit together", "random weights that `ingot synth` made"}) {
    EXPECT_TRUE(text.out.contains(words)) << words << "\n" << text.out;
  }
  const json::object result = document({"inspect", model()});
  EXPECT_EQ(result.at("schema"), "ingot.inspect/1");
  EXPECT_EQ(result.at("provenance").as_object().at("model_hash").as_string().size(), 16U);
  EXPECT_TRUE(result.at("findings").as_array().empty());
  EXPECT_TRUE(result.at("synthetic_weights").as_bool());
  EXPECT_EQ(result.at("rows").as_array().size(), result.at("tensors").to_number<size_t>());
  EXPECT_EQ(result.at("modules").as_object().at("routed experts").as_object().at("tensors"), 24);
}

TEST_F(Commands, InspectCountsAConfigAlone) {
  const std::string config = std::string(INGOT_SOURCE_DIR) + "/tests/golden/configs/glm-5.2.json";
  const json::object result = document({"inspect", config});
  EXPECT_EQ(result.at("parameters"), 753329940480);
  EXPECT_EQ(result.at("tensors"), 59585);
  EXPECT_EQ(result.at("bytes"), 0);
  EXPECT_FALSE(result.at("synthetic_weights").as_bool());
  EXPECT_NEAR(result.at("active_parameters").to_number<double>(), 40.30e9, 0.005e9);
  const Outcome text = run_ingot({"inspect", config});
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(text.out.contains("753,329,940,480 in 59,585 tensors; 40.30 B active")) << text.out;

  const base::ScratchDirectory scratch;
  fs::copy(config, scratch / "config.json");
  const Outcome beside = run_ingot({"inspect", scratch.path().string()});
  EXPECT_EQ(beside.status, 0);
  EXPECT_TRUE(beside.err.contains("no weights beside config.json")) << beside.err;
}

TEST_F(Commands, InspectSaysWhatAnotherProgramWouldLoad) {
  json::object config = model::small_config();
  config["architectures"] = json::array{"GlmMoeDsaForCausalLM"};
  const std::string right = with_config("for_right", config);
  for (const char* program : {"sglang", "sglang-0.5.13", "vllm"}) {
    const Outcome text = run_ingot({"inspect", right, "--for", program});
    EXPECT_EQ(text.status, 0) << text.out;
    EXPECT_TRUE(text.out.contains("would load every tensor in the format that the file has"))
        << text.out;
    const json::object result = document({"inspect", right, "--for", program});
    const json::object& loader = result.at("loader").as_object();
    EXPECT_EQ(loader.at("name"), program);
    EXPECT_EQ(loader.at("loads_right"), true);
    EXPECT_EQ(loader.at("findings").as_array().size(), 0U);
  }
  // Everything described as FP8 and stored as it was.
  config["quantization_config"] = json_of(R"({"quant_method": "fp8",
      "activation_scheme": "dynamic", "weight_block_size": [128, 128]})");
  const std::string wrong = with_config("for_wrong", config);
  const Outcome text = run_ingot({"inspect", wrong, "--for", "vllm"});
  EXPECT_EQ(text.status, 1);
  for (const char* words : {"ERROR", "as FP8 in blocks of 128 x 128", "modules_to_not_convert",
                            "would not load this checkpoint right"}) {
    EXPECT_TRUE(text.out.contains(words)) << words << "\n" << text.out;
  }
  EXPECT_EQ(run_ingot({"inspect", wrong}).status, 0);
  const Outcome listed = run_ingot({"inspect", wrong, "--for", "vllm", "--json"});
  const json::value loader = json_of(listed.out).at("loader");
  size_t num_tensors = 0;
  for (const json::value& finding : loader.at("findings").as_array()) {
    if (finding.at("code") != "built_otherwise") continue;
    const json::array& tensors = finding.at("tensors").as_array();
    num_tensors += tensors.size();
    EXPECT_TRUE(std::string_view(finding.at("message").get_string())
                    .starts_with(fmt::format("{} tensors", tensors.size())));
    for (const json::value& tensor : tensors) {
      EXPECT_TRUE(std::string_view(tensor.as_string()).ends_with(".weight"));
    }
  }
  EXPECT_GT(num_tensors, 20U) << "all of them, by name";

  const Outcome alone = run_ingot({"inspect", right + "/config.json", "--for", "sglang"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_TRUE(alone.err.contains("--for needs tensor headers")) << alone.err;
  EXPECT_EQ(run_ingot({"inspect", right, "--for", "something"}).status, 2);
}

TEST_F(Commands, InspectShowsKernels) {
  const Outcome text = run_ingot({"inspect", model(), "--kernels"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(text.out.contains("read per token are read by reference kernels")) << text.out;
  const json::object result = document({"inspect", model(), "--kernels"});
  const json::array& kernels = result.at("kernels").as_array();
  ASSERT_FALSE(kernels.empty());
  for (const json::value& kernel : kernels) {
    for (const char* key :
         {"operation", "formats", "shape", "kernel", "target", "tuning", "uses"}) {
      EXPECT_TRUE(kernel.as_object().contains(key)) << key;
    }
  }
  EXPECT_EQ(run_ingot({"inspect", path("small.json"), "--kernels"}).status, 2);
}

// A model that cannot be loaded is an answer of inspect and an error of the others.
TEST_F(Commands, InspectAnswersNo) {
  json::object config = model::small_config();
  config["num_nextn_predict_layers"] = 0;
  const std::string damaged = with_config("unannounced", config);
  const Outcome outcome = run_ingot({"inspect", damaged});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(outcome.out.contains("ERROR: model.layers.3.")) << outcome.out;
  EXPECT_TRUE(outcome.out.contains("more of unannounced_mtp")) << outcome.out;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(run_ingot({"inspect", damaged, "--kernels", "--json"}).status, 1);
}

TEST_F(Commands, ScoreGivesLikelihoodAndLogits) {
  const std::string logits = path("logits.npy");
  const json::object result =
      document({"score", model(), "--token-ids", ids_file("[7, 3, 150, 3, 9, 20, 41, 5, 77]"),
                "--logits", logits});
  EXPECT_EQ(result.at("schema"), "ingot.score/1");
  const json::object& provenance = result.at("provenance").as_object();
  for (const char* key : {"commit", "build", "processor", "threads", "model_hash", "time"}) {
    EXPECT_TRUE(provenance.contains(key)) << key;
  }
  EXPECT_EQ(result.at("num_tokens"), 9);
  const double nll = result.at("nll").as_double();
  EXPECT_NEAR(result.at("perplexity").as_double(), std::exp(nll), 1e-9 * std::exp(nll));

  const tensor::NpyArray array = tensor::read_npy(logits).value();
  EXPECT_EQ(array.shape, (tensor::Shape{9, kVocabulary}));
  const int ids[] = {7, 3, 150, 3, 9, 20, 41, 5, 77};
  double sum = 0;
  for (size_t row = 0; row + 1 < std::size(ids); ++row) {
    double total = 0;
    const float* values = array.values.data() + row * kVocabulary;
    for (int64_t i = 0; i < kVocabulary; ++i) total += std::exp(static_cast<double>(values[i]));
    sum += std::log(total) - values[ids[row + 1]];
  }
  EXPECT_NEAR(nll, sum / 8, 1e-9);
}

TEST_F(Commands, ScoreOfOneTokenHasNoLikelihood) {
  const json::object result = document({"score", model(), "--token-ids", ids_file("[7]")});
  EXPECT_EQ(result.at("num_tokens"), 1);
  EXPECT_TRUE(result.at("nll").is_null());
  EXPECT_TRUE(result.at("perplexity").is_null());
}

TEST_F(Commands, ScoreWritesAFileForEachOfSeveralSequences) {
  const fs::path directory = path("several");
  const json::object result =
      document({"score", model(), "--token-ids", ids_file("[[7, 3, 150], [9], [7, 3, 150, 4]]"),
                "--logits", directory.string()});
  EXPECT_EQ(result.at("num_tokens"), 8);
  EXPECT_EQ(result.at("sequences").as_array().size(), 3U);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory), {}), 3);
  const auto first = tensor::read_npy(directory / "0.npy").value();
  EXPECT_EQ(first.shape, (tensor::Shape{3, kVocabulary}));
  EXPECT_EQ(tensor::read_npy(directory / "1.npy").value().shape, (tensor::Shape{1, kVocabulary}));
  const auto longer = tensor::read_npy(directory / "2.npy").value();
  EXPECT_TRUE(std::ranges::equal(first.values, std::span(longer.values).first(first.values.size())))
      << "what comes later changes nothing before it";
}

TEST_F(Commands, ThreadsChangeNoBit) {
  const std::string ids = ids_file("[7, 3, 150, 3, 9, 20, 41, 5, 77, 1, 2, 3, 4, 5]");
  for (const char* threads : {"1", "2", "5"}) {
    const std::string logits = (*scratch_ / (std::string(threads) + ".npy")).string();
    const json::object result =
        document({"score", model(), "--token-ids", ids, "--logits", logits, "--threads", threads});
    EXPECT_EQ(std::to_string(result.at("provenance").as_object().at("threads").as_int64()),
              threads);
    EXPECT_TRUE(contents(logits) == contents(path("1.npy"))) << threads;
  }
  document({"score", model(), "--token-ids", ids, "--logits", path("by variable.npy")},
           {.environment = {{"INGOT_THREADS", "3"}}});
  EXPECT_TRUE(contents(path("by variable.npy")) == contents(path("1.npy")));
}

TEST_F(Commands, TargetsAgree) {
  const std::string ids = ids_file("[7, 3, 150, 3, 9, 20, 41, 5, 77]");
  const json::object best = document({"score", model(), "--token-ids", ids});
  const json::object slow = document({"score", model(), "--token-ids", ids},
                                     {.environment = {{"INGOT_TARGETS", "reference"}}});
  EXPECT_NEAR(best.at("nll").as_double(), slow.at("nll").as_double(), 1e-3);
  for (const char* target : {"nonsense", "AVX2", "reference,avx2"}) {
    const Outcome outcome = run_ingot({"score", model(), "--token-ids", ids},
                                      {.environment = {{"INGOT_TARGETS", target}}});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(outcome.err.contains("unknown; use reference, avx2 or avx512")) << outcome.err;
  }
}

TEST_F(Commands, GenerateReportsWhatItDid) {
  const json::object result =
      document({"generate", model(), "--token-ids", ids_file("[1, 2, 3]"), "--max-tokens", "5"});
  EXPECT_EQ(result.at("schema"), "ingot.generate/1");
  EXPECT_EQ(result.at("token_ids").as_array().size(), 5U);
  EXPECT_TRUE(result.at("text").is_null());
  EXPECT_EQ(result.at("finish_reason"), "length");
  const json::object& usage = result.at("usage").as_object();
  EXPECT_EQ(usage.at("prompt_tokens"), 3);
  EXPECT_EQ(usage.at("completion_tokens"), 5);
  EXPECT_EQ(usage.at("total_tokens"), 8);
  EXPECT_EQ(usage.at("draft_tokens"), 0);
  EXPECT_EQ(usage.at("accepted_tokens"), 0);
  EXPECT_EQ(result.at("timings").as_object().size(), 5U);
  const Outcome text =
      run_ingot({"generate", model(), "--token-ids", path("ids.json"), "--max-tokens", "5"});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(std::ranges::count(text.out, ' '), 4) << text.out;
  EXPECT_TRUE(text.err.contains("3 prompt tokens")) << text.err;
}

TEST_F(Commands, GenerateIsTheChainOfBestTokens) {
  const std::vector<int64_t> ids = generated({"--max-tokens", "12"});
  ASSERT_EQ(ids.size(), 12U);
  json::array known = {1, 2, 3};
  for (const int64_t id : ids) known.emplace_back(id);
  document({"score", model(), "--token-ids", ids_file(json::serialize(known)), "--logits",
            path("chain.npy")});
  const auto logits = tensor::read_npy(path("chain.npy")).value();
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = std::span(logits.values).subspan((2 + i) * kVocabulary, kVocabulary);
    EXPECT_EQ(std::ranges::max_element(row) - row.begin(), ids[i]) << i;
  }
}

TEST_F(Commands, SeedsDecide) {
  const auto at = [](const char* seed) {
    return generated({"--max-tokens", "12", "--temperature", "1", "--seed", seed});
  };
  EXPECT_EQ(at("1"), at("1"));
  EXPECT_NE(at("1"), at("2"));
}

TEST_F(Commands, GenerateStopsAtTheEnd) {
  const std::vector<int64_t> ids = generated({"--max-tokens", "12"});
  const int64_t stop = ids[5];
  const auto first = std::ranges::find(ids, stop) - ids.begin();
  json::object config = model::small_config();
  config["eos_token_id"] = stop;
  const json::object result = document({"generate", with_config("stops", config), "--token-ids",
                                        ids_file("[1, 2, 3]"), "--max-tokens", "12"});
  EXPECT_EQ(result.at("finish_reason"), "stop");
  EXPECT_EQ(result.at("token_ids").as_array().size(), static_cast<size_t>(first));
}

TEST_F(Commands, GenerateStopsAtTheLastPosition) {
  json::object config = model::small_config();
  config["eos_token_id"] = nullptr;
  config["max_position_embeddings"] = 8;
  const json::object result = document({"generate", with_config("short", config), "--token-ids",
                                        ids_file("[1, 2, 3]"), "--max-tokens", "1000"});
  EXPECT_EQ(result.at("finish_reason"), "length");
  EXPECT_EQ(result.at("token_ids").as_array().size(), 5U) << "prompt and output together";
}

TEST_F(Commands, OptionsComeFromAFileToo) {
  write_file(path("options.toml"), "threads = 2\njson = true\n[generate]\nmax-tokens = 4\n");
  const Outcome outcome = run_ingot({"generate", model(), "--token-ids", ids_file("[1, 2, 3]"),
                                     "--config", path("options.toml")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json::object result = json_of(outcome.out).get_object();
  EXPECT_EQ(result.at("token_ids").as_array().size(), 4U);
  EXPECT_EQ(result.at("provenance").as_object().at("threads"), 2);
}

TEST_F(Commands, AMissingMtpLayerIsSaidAtStart) {
  const std::string ids = ids_file("[1, 2]");
  const Outcome made = run_ingot({"synth", path("plain"), "--config", path("small.json"), "--mtp",
                                  "none", "--layers", "2", "--experts", "2"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(run_ingot({"score", path("plain"), "--token-ids", ids}).err, "");
  json::object config = json_of(contents(fs::path(path("plain")) / "config.json")).get_object();
  config["num_nextn_predict_layers"] = 1;
  write_file(fs::path(path("plain")) / "config.json", json::serialize(config));
  const Outcome outcome = run_ingot({"score", path("plain"), "--token-ids", ids});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.err.contains("without speculation")) << outcome.err;
}

TEST(Program, SaysItsVersion) {
  const Outcome outcome = run_ingot({"--version"});
  EXPECT_EQ(outcome.status, 0);
  for (const char* words : {"ingot ", "commit ", "compiler ", "targets ", "reference"}) {
    EXPECT_TRUE(outcome.out.contains(words)) << outcome.out;
  }
}

TEST(Program, HelpsWithEveryCommand) {
  const Outcome outcome = run_ingot({"--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.err, "");
  for (const char* command : {"inspect", "score", "generate", "synth"}) {
    EXPECT_TRUE(outcome.out.contains(command)) << outcome.out;
    const Outcome help = run_ingot({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_TRUE(help.out.contains("--help")) << help.out;
    EXPECT_EQ(help.err, "") << command;
  }
}

}  // namespace
}  // namespace ingot::endtoend
