// `ingot quantize`: from a made-up model to one that runs, through kills, Ctrl-C and bad options.

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "endtoend/quantized_model.h"
#include "model/config_fixture.h"

namespace ingot::endtoend {
namespace {

namespace fs = std::filesystem;
namespace json = base::json;
using model::json_of;

// Starts the program silently, sends it a signal some time after it started, or after a file was
// there, and waits for its end.
int status_after_signal(const std::vector<std::string>& arguments, int signal, int64_t delay_us,
                        const fs::path& file = {}) {
  const pid_t child = ::fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    execute_ingot(arguments);
  }
  const auto is_running = [&] {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
  };
  while (!file.empty() && !fs::exists(file) && is_running()) ::usleep(50);
  ::usleep(static_cast<useconds_t>(delay_us));
  ::kill(child, signal);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  return status;
}

class Quantize : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new base::ScratchDirectory;
    const Outcome synth = run_ingot({"synth", path("model"), "--config", "tiny", "--seed", "4"});
    CHECK(synth.status == 0, synth.err);
    split_weights(path("model"));
    write_file(fs::path(path("model")) / "notes.txt", "a side file");
    const auto begin = base::SystemClock().now();
    const Outcome outcome = run_ingot(quantize("expected"));
    duration_us_ = static_cast<int64_t>(1e6 * base::seconds(base::SystemClock().now() - begin));
    CHECK(outcome.status == 0, outcome.err);
    CHECK(outcome.err.empty(), outcome.err);
    out_ = outcome.out;
    expected_ = snapshot(path("expected"));
  }
  static void TearDownTestSuite() { delete scratch_; }

  static std::string path(const char* name) { return (*scratch_ / name).string(); }
  static std::vector<std::string> quantize(const char* destination,
                                           const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"quantize", path("model"), path(destination)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return arguments;
  }

  static base::ScratchDirectory* scratch_;
  static std::string out_;
  static std::map<std::string, std::string> expected_;
  static int64_t duration_us_;  // of one run
};

base::ScratchDirectory* Quantize::scratch_ = nullptr;
std::string Quantize::out_;
std::map<std::string, std::string> Quantize::expected_;
int64_t Quantize::duration_us_ = 0;

TEST_F(Quantize, SaysWhatItDidAndWhoLoadsIt) {
  for (const char* words : {"routed experts", "mxfp4", "rms error", "worst tensors",
                            "ingot loads every tensor", "sglang", "vLLM"}) {
    EXPECT_TRUE(out_.contains(words)) << words << "\n" << out_;
  }
  EXPECT_EQ(expected_.size(), kShards + 3) << "index, config and side file";
  EXPECT_EQ(expected_.at("notes.txt"), "a side file");
}

TEST_F(Quantize, ResultRunsAndExplainsItself) {
  write_file(path("ids.json"), "[1, 2, 3, 4, 5]");
  const Outcome score = run_ingot({"score", path("expected"), "--token-ids", path("ids.json")});
  EXPECT_EQ(score.status, 0) << score.err;
  const Outcome text = run_ingot({"inspect", path("expected")});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(text.out.contains("how it was made, by ingot quantize")) << text.out;
  EXPECT_TRUE(text.out.contains("worst tensors")) << text.out;
  const Outcome described = run_ingot({"inspect", path("expected"), "--json"});
  const json::object document = json_of(described.out).get_object();
  const json::object& quantization = document.at("quantization").as_object();
  EXPECT_EQ(quantization.at("recipe"), "amd-glm-5.2");
  EXPECT_EQ(quantization.at("complete"), true);
  EXPECT_FALSE(quantization.at("tensors").as_array().empty());
}

TEST_F(Quantize, InspectFindsADamagedReport) {
  fs::copy(path("expected"), path("damaged"));
  write_file(fs::path(path("damaged")) / kManifest, "{\"schema\": \"ingot.quantization/2\"}");
  const Outcome outcome = run_ingot({"inspect", path("damaged")});
  EXPECT_EQ(outcome.status, 0) << "it loads all the same";
  EXPECT_TRUE(outcome.out.contains("its schema is \"ingot.quantization/2\"")) << outcome.out;
}

TEST_F(Quantize, ReportsInJson) {
  const Outcome outcome = run_ingot(quantize(
      "reported", {"--json", "--memory", "64MiB", "--threads", "3", "--report", path("r.json")}));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, contents(path("r.json")));
  const json::object document = json_of(outcome.out).get_object();
  EXPECT_EQ(document.at("schema"), "ingot.quantization/1");
  EXPECT_EQ(document.at("num_shards"), kShards);
  EXPECT_FALSE(document.at("classes").as_array().empty());
  EXPECT_EQ(document.at("loaders").as_object().size(), 3U);
  EXPECT_EQ(document.at("loaders").at("vllm").at("meant"), true);
  EXPECT_EQ(document.at("loaders").at("vllm").at("loads"), true);
  EXPECT_TRUE(snapshot(path("reported")) == expected_);
}

TEST_F(Quantize, ADryRunWritesNothing) {
  const Outcome text = run_ingot(quantize("dry", {"--dry-run"}));
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(text.out.contains("routed experts")) << text.out;
  EXPECT_TRUE(text.out.contains("sglang 0.5.23 loads every tensor")) << text.out;
  const Outcome without = run_ingot({"quantize", path("model"), "--dry-run"});
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_TRUE(text.out.starts_with(without.out)) << without.out;
  EXPECT_TRUE(text.out.contains("/dry: ")) << text.out;
  EXPECT_TRUE(text.out.contains("MB would be written at most, and ")) << text.out;
  const Outcome outcome = run_ingot(quantize("dry", {"--dry-run", "--json"}));
  const json::object document = json_of(outcome.out).get_object();
  EXPECT_EQ(document.at("schema"), "ingot.quantization_plan/1");
  EXPECT_EQ(document.at("tensors").as_array().size(), 428U);
  EXPECT_EQ(document.at("destination").at("is_complete"), false);
  EXPECT_GT(document.at("destination").at("bytes_to_write_max").as_int64(), 0);
  EXPECT_FALSE(fs::exists(path("dry")));
}

// What a run would meet at its destination, refusals included, in the run's own words.
TEST_F(Quantize, ADryRunLooksAtTheDestination) {
  const Outcome complete = run_ingot(quantize("expected", {"--dry-run"}));
  EXPECT_EQ(complete.status, 0) << complete.err;
  EXPECT_TRUE(complete.out.contains("complete already; nothing would be written")) << complete.out;
  fs::copy(path("expected"), path("half"));
  const auto shard = [&](int number) {
    return fs::path(path("half")) /
           fmt::format("model-{:05}-of-{:05}.safetensors", number, kShards);
  };
  for (const fs::path& file : {fs::path(path("half")) / "config.json", shard(2), shard(4)}) {
    fs::remove(file);
  }
  const auto before = snapshot(path("half"));
  const Outcome half = run_ingot(quantize("half", {"--dry-run"}));
  EXPECT_EQ(half.status, 0) << half.err;
  EXPECT_TRUE(half.out.contains("an interrupted run of this, 3 of 5 files finished; ")) << half.out;
  EXPECT_TRUE(snapshot(path("half")) == before);
  write_file(path("file"), "x");
  fs::create_directory(path("other"));
  write_file(path("other") + "/mine.txt", "x");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {quantize("file"), "cannot create"},
      {quantize("other"), "holds mine.txt and no interrupted run"},
      {quantize("model"), "lies in the source"},
      {quantize("half", {"--dequant", "bf16"}), "holds an interrupted run of other work"},
      {quantize("expected", {"--dequant", "bf16"}), "holds a model already"},
      {quantize("new", {"--memory", "1KiB"}), "is too little"},
  };
  for (const auto& [arguments, words] : cases) {
    std::vector<std::string> dry_run = arguments;
    dry_run.emplace_back("--dry-run");
    for (const auto& command : {arguments, dry_run}) {
      const Outcome outcome = run_ingot(command);
      EXPECT_EQ(outcome.status, 2) << words;
      EXPECT_TRUE(outcome.err.contains(words)) << outcome.err;
      EXPECT_EQ(outcome.out, "");
    }
  }
}

TEST_F(Quantize, AnUnfinishedDestinationIsNamedAsSuch) {
  fs::copy(path("expected"), path("unfinished"));
  fs::remove(fs::path(path("unfinished")) / "config.json");
  write_file(path("unfinished.json"), "[1, 2]");
  const std::string model = path("unfinished");
  const std::vector<std::string> commands[] = {
      {"inspect", model},
      {"chat", model, "Hello"},
      {"generate", model, "--prompt", "Hello"},
      {"generate", model, "--token-ids", path("unfinished.json")},
      {"score", model, "--token-ids", path("unfinished.json")},
      {"quantize", model, path("never")},
  };
  for (const auto& command : commands) {
    const Outcome outcome = run_ingot(command);
    EXPECT_EQ(outcome.status, 2) << command[0];
    EXPECT_TRUE(
        outcome.err.contains("an unfinished quantization; give the same `ingot quantize` "
                             "command again to finish it"))
        << command[0] << ": " << outcome.err;
  }
  EXPECT_EQ(run_ingot(quantize("unfinished")).status, 0);
  EXPECT_TRUE(snapshot(model) == expected_);
}

// What others would not load is said before the work and after it, and is no failure of a recipe
// that is not meant for them.
TEST_F(Quantize, SaysBeforeAndAfterWhoWouldNotLoadIt) {
  const std::vector<std::string> recipe = {"--recipe", "amd-glm-5.2-attn-fp8"};
  std::vector<std::string> dry_run = recipe;
  dry_run.push_back("--dry-run");
  for (const auto& options : {dry_run, recipe}) {
    const Outcome outcome = run_ingot(quantize("fp8", options));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(outcome.err.empty()) << outcome.err;
    EXPECT_TRUE(outcome.out.contains("  ingot loads every tensor")) << outcome.out;
    EXPECT_TRUE(
        outcome.out.contains("vLLM 0.33.0 would not load it right; the recipe is not meant "
                             "for it\n    ERROR: lm_head"))
        << outcome.out;
  }
  std::string text =
      contents(fs::path(INGOT_SOURCE_DIR) / "src/quantize/recipes/amd-glm-5.2-attn-fp8.toml");
  const std::string loaders = "loaders = [\"ingot\"]";
  text.replace(text.find(loaders), loaders.size(), "loaders = [\"ingot\", \"vllm\"]");
  text.replace(text.find("amd-glm-5.2-attn-fp8"), 20, "mine");
  write_file(path("mine.toml"), text);
  const std::vector<std::string> mine = {"--recipe", path("mine.toml")};
  const Outcome outcome = run_ingot(quantize("mine", mine));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(outcome.err.contains("warning: vLLM 0.33.0 would not load the result right: lm_head"))
      << outcome.err;
}

TEST_F(Quantize, AReportReplacesNothingButAReport) {
  const std::string config = contents(fs::path(path("model")) / "config.json");
  write_file(path("mine.json"), "{\"schema\": \"mine\"}");
  fs::create_symlink(path("expected"), path("link"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {path("model") + "/config.json", "lies in "},
      {path("model") + "/new.json", "lies in "},
      {path("link") + "/../model/new.json", "lies in "},
      {path("mine.json"), "something else is there"},
  };
  for (const auto& [file, words] : cases) {
    const Outcome outcome = run_ingot(quantize("never", {"--report", file}));
    EXPECT_EQ(outcome.status, 2) << file;
    EXPECT_TRUE(outcome.err.contains(words)) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(path("never"))) << "at the start";
  }
  EXPECT_EQ(contents(fs::path(path("model")) / "config.json"), config);
  EXPECT_EQ(contents(path("mine.json")), "{\"schema\": \"mine\"}");
  const Outcome inside =
      run_ingot(quantize("expected", {"--report", path("expected") + "/r.json"}));
  EXPECT_TRUE(inside.err.contains("lies in ")) << inside.err;
  const std::vector<std::string> twice = {"--report", path("twice.json")};
  EXPECT_EQ(run_ingot(quantize("expected", twice)).status, 0);
  EXPECT_EQ(run_ingot(quantize("expected", twice)).status, 0) << "its own report";
}

TEST_F(Quantize, RefusesBadOptions) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {quantize("bad", {"--recipe", "absent"}), "absent"},
      {quantize("bad", {"--memory", "1KiB"}), "is too little"},
      {quantize("bad", {"--memory", "-5"}), "negative"},
      {quantize("bad", {"--dequant", "f64"}), "--dequant"},
      {quantize("bad", {"--report", path("report.txt")}), "ends in .json"},
      {quantize("bad", {"--report", path("nowhere") + "/r.json"}), "its directory is not there"},
      {quantize("expected", {"--dequant", "bf16"}),
       "holds a model already, of other work: --dequant was fp32 there and is bf16 here"},
      {quantize("model"), "lies in the source"},
      {{"quantize", path("model")}, "DESTINATION is missing"},
      {{"quantize", path("model"), "/proc/quantized"}, "cannot create"},
      {{"quantize", path("expected"), path("bad")}, "MXFP4 already"},
      {{"quantize", path("absent"), path("bad")},
       "absent: not there; SOURCE is a model's directory"},
      {{"quantize", path("model") + "/config.json", path("bad")},
       "config.json: no directory; SOURCE is a model's directory"},
      {{"quantize", scratch_->path().string(), path("bad")},
       "no config.json in it; SOURCE is a model's directory: config.json and its safetensors"},
  };
  for (const auto& [arguments, words] : cases) {
    const Outcome outcome = run_ingot(arguments);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_TRUE(outcome.err.contains(words)) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(path("bad"))) << words;
  }
}

TEST_F(Quantize, AFullDiskIsOneLine) {
  uint64_t largest = 0;
  for (const auto& [name, bytes] : expected_) largest = std::max<uint64_t>(largest, bytes.size());
  const Outcome full = run_ingot(quantize("full"), {.file_size_bytes_max = largest - 1});
  EXPECT_EQ(full.status, 2);
  EXPECT_TRUE(full.err.contains("no space for ")) << full.err;
  EXPECT_EQ(std::ranges::count(full.err, '\n'), 1) << full.err;
  EXPECT_EQ(run_ingot(quantize("full")).status, 0);
  EXPECT_TRUE(snapshot(path("full")) == expected_);
}

// Whatever the moment, what stands under its own name is whole, and the next run goes on. Kills at
// counted steps are in quantizer_kill_test.cc; these are of the whole program, at random moments.
TEST_F(Quantize, FiftyKillsChangeNoByte) {
  const base::RandomStream stream = base::random_stream(11, "moments");
  for (uint64_t i = 0; i < 50; ++i) {
    const auto delay_us =
        static_cast<int64_t>(stream.word(i) % static_cast<uint64_t>(duration_us_));
    status_after_signal(quantize("killed"), SIGKILL, delay_us);
    const auto files = snapshot(path("killed"));
    for (const auto& [name, bytes] : files) {
      if (is_partial(name)) continue;
      EXPECT_TRUE(expected_.contains(name) && expected_.at(name) == bytes) << name;
    }
    if (!files.contains("config.json")) continue;
    EXPECT_TRUE(files == expected_) << "complete";
    const Outcome again = run_ingot(quantize("killed"));
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_TRUE(again.err.contains("complete already; nothing is written")) << again.err;
    EXPECT_TRUE(again.out.contains("ingot loads every tensor")) << again.out;
    fs::remove_all(path("killed"));
  }
  const Outcome outcome = run_ingot(quantize("killed"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(snapshot(path("killed")) == expected_);
}

TEST_F(Quantize, TheSameCommandAfterCompletionReportsAndWritesNothing) {
  fs::copy(path("expected"), path("complete"));
  const std::string manifest = contents(fs::path(path("complete")) / kManifest);
  const Outcome outcome = run_ingot(quantize("complete", {"--report", path("again.json")}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.contains("worst tensors")) << outcome.out;
  EXPECT_TRUE(fs::exists(path("again.json")));
  EXPECT_EQ(contents(fs::path(path("complete")) / kManifest), manifest);
  const fs::path shard = fs::path(path("complete")) / "model-00002-of-00005.safetensors";
  fs::remove(shard);
  const Outcome lacking = run_ingot(quantize("complete"));
  EXPECT_EQ(lacking.status, 2);
  EXPECT_TRUE(lacking.err.contains("remove config.json beside it")) << lacking.err;
  fs::remove(fs::path(path("complete")) / "config.json");
  EXPECT_EQ(run_ingot(quantize("complete")).status, 0);
  EXPECT_TRUE(snapshot(path("complete")) == expected_);
}

// The signal comes when the manifest is there, after which the run has all its files to write. A
// run that is through by then has to be repeated.
TEST_F(Quantize, CtrlCLeavesWholeFilesAndNothingElse) {
  int interrupted = 0;
  for (int attempt = 0; attempt < 100 && interrupted < 5; ++attempt) {
    fs::remove_all(path("stopped"));
    const int status = status_after_signal(quantize("stopped"), SIGINT, attempt * 200,
                                           fs::path(path("stopped")) / kManifest);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_TRUE(WEXITSTATUS(status) == 130 || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    interrupted += WEXITSTATUS(status) == 130 ? 1 : 0;
    const auto files = snapshot(path("stopped"));
    for (const auto& [name, bytes] : files) EXPECT_FALSE(is_partial(name)) << name;
  }
  EXPECT_GT(interrupted, 0);
  const Outcome outcome = run_ingot(quantize("stopped"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(snapshot(path("stopped")) == expected_);
}

}  // namespace
}  // namespace ingot::endtoend
