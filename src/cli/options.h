#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/grouped.h"
#include "base/result.h"
#include "engine/model_runner.h"
#include "engine/sampler.h"

namespace ingot::cli {

// Options that mean the same in every command.
struct CommonOptions {
  int threads = 0;  // 0: as many as the machine and its cgroup allow
  bool json = false;
  std::string targets;  // INGOT_TARGETS
};

// Options of every command that runs a model.
struct ModelOptions {
  std::filesystem::path model;
  std::string activations = "auto";
  std::string kv_dtype = "auto";
  // Whether hot shapes may run on reference kernels; commands that measure or serve refuse that
  // unless it is asked for.
  engine::RunnerOptions::SlowKernels slow_kernels = engine::RunnerOptions::SlowKernels::kWarn;
};

// Options of every command that serves requests.
struct EngineChoices {
  std::string speculative_tokens = "auto";  // or a number
  int64_t kv_tokens = 0;                    // 0: the command's own default
  bool no_prefix_cache = false;
  std::vector<double> simulated_acceptance;  // by position; empty: the model decides
};

struct InspectOptions {
  ModelOptions model;  // a directory, or a config.json alone
  bool kernels = false;
  std::string loader;  // a name of quantize::Loader; empty: none is asked about
};

struct ScoreOptions {
  ModelOptions model;
  std::filesystem::path token_ids;
  std::filesystem::path logits;  // empty: not written
  int32_t draft_tokens = 0;
};

struct GenerateOptions {
  ModelOptions model;
  // A file of requests and one for their answers, instead of a prompt.
  std::filesystem::path requests;
  std::filesystem::path out;
  std::string served_model_name;  // empty: that of the directory
  int32_t max_running = 64;
  int32_t max_step_tokens = 512;
  // The prompt; exactly one of them.
  std::filesystem::path token_ids;
  std::optional<std::string> prompt;
  std::filesystem::path prompt_file;
  bool control_tokens = false;  // recognised in the prompt
  int64_t max_tokens = 128;
  int32_t min_tokens = 0;
  std::vector<std::string> stop_strings;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  bool prompt_logprobs = false;
  EngineChoices engine;
  engine::SamplingParams sampling;
};

struct ChatOptions {
  ModelOptions model;
  // The only message, or a file with a conversation to answer; without either, messages come from
  // standard input.
  std::optional<std::string> message;
  std::filesystem::path messages;
  std::string system;
  std::string thinking = "auto";  // "auto", "on", "off"
  bool hide_thinking = false;
  std::string reasoning_effort;  // empty: the template's own
  int64_t max_tokens = 1024;
  EngineChoices engine;
  engine::SamplingParams sampling;
};

struct TokenizeOptions {
  std::filesystem::path model;
  // What to tokenize; exactly one of them.
  std::optional<std::string> text;
  std::filesystem::path file;
  std::filesystem::path lines;
  std::filesystem::path messages;
  std::filesystem::path token_ids;  // the other way
  bool control_tokens = false;
};

struct SynthOptions {
  std::filesystem::path destination;
  std::string config;  // a name or a file
  std::string dtype = "bf16";
  std::string recipe;  // a name or a file; empty: nothing is quantized
  std::string mtp = "keep";
  std::optional<int64_t> layers;
  std::optional<int64_t> experts;
  uint64_t seed = 0;
};

struct BenchEngineOptions {
  ModelOptions model;
  std::vector<int64_t> prefill = {512};
  std::vector<int64_t> depth = {0};
  std::vector<int64_t> batch = {1};
  int64_t decode = 64;
  int64_t max_step_tokens = 512;
  int32_t repetitions = 5;
  int32_t speculative_tokens = 0;
  std::vector<double> simulated_acceptance;  // by position; only counted with
  bool cpu_time = false;
  uint64_t seed = 0;
};

struct QuantizeOptions {
  std::filesystem::path source;
  std::filesystem::path destination;
  std::string recipe;  // a name or a file; empty: the family's own
  std::string dequantization = "fp32";
  std::string scale_search = "even";
  uint64_t memory_bytes = uint64_t{1} << 30;
  std::filesystem::path report;  // empty: only the one beside the weights
  bool dry_run = false;
};

// The commands, one a file. Each returns the exit status: 0 done, 1 it ran and the answer is no; an
// error is bad usage or input, exit status 2.
base::Result<int> inspect(const CommonOptions& common, const InspectOptions& options);
base::Result<int> score(const CommonOptions& common, const ScoreOptions& options);
base::Result<int> generate(const CommonOptions& common, const GenerateOptions& options);
base::Result<int> chat(const CommonOptions& common, const ChatOptions& options);
base::Result<int> tokenize(const CommonOptions& common, const TokenizeOptions& options);
base::Result<int> synth(const CommonOptions& common, const SynthOptions& options);
base::Result<int> bench_engine(const CommonOptions& common, const BenchEngineOptions& options);
base::Result<int> quantize(const CommonOptions& common, const QuantizeOptions& options);

// Threads to use, and the rest in the form that the engine takes.
int thread_count(const CommonOptions& common);
base::Result<engine::RunnerOptions> executor_options(const CommonOptions& common,
                                                     const ModelOptions& options);

using base::grouped;

}  // namespace ingot::cli
