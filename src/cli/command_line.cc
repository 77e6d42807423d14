#include "cli/command_line.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/build_info.h"
#include "cli/options.h"
#include "kernels/target.h"
#include "model/named_configs.h"
#include "quantize/recipe.h"

namespace ingot::cli {
namespace {

std::string version_text() {
  const base::BuildInfo& build = base::build_info();
  const kernels::Target usable = kernels::detect_target();
  std::string targets;
  for (const auto target : kernels::built_targets()) {
    targets += fmt::format("{}{}{}", targets.empty() ? "" : ", ", name(target),
                           target <= usable ? "" : " (not on this processor)");
  }
  return fmt::format("ingot {}\ncommit   {}\ncompiler {}, {}\ntargets  {}", build.version,
                     build.commit, build.compiler, build.build_type, targets);
}

// One line to stderr and the exit status for bad usage or input.
int fail(std::string_view message) {
  std::string line(message);
  for (char& c : line) {
    // What strangers named goes into messages: it neither breaks the line nor steers a terminal.
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  std::fprintf(stderr, "ingot: error: %s\n", line.c_str());
  return 2;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// CLI::Range lets NaN through; no number within a range is spelled with an n.
std::string not_nan(const std::string& text) {
  return text.find_first_of("nN") == std::string::npos ? "" : "Value " + text + " is no number";
}

// Reading a negative number as an unsigned one wraps around.
std::string not_negative(const std::string& text) {
  return text.contains('-') ? "Value " + text + " is negative" : "";
}

// A subcommand and what it does when it is the one.
struct Command {
  CLI::App* app;
  std::function<base::Result<int>(const CommonOptions&)> run;
};

void add_numeric_options(CLI::App& app, ModelOptions& options) {
  app.add_option(
         "--activations", options.activations,
         "Type in which linear layers multiply; auto: f32 for f32 and f16 weights, bf16 for "
         "bf16 and FP8, int8 with a scale per 32 values for MXFP4")
      ->check(CLI::IsMember({"auto", "f32", "bf16", "int8"}))
      ->capture_default_str();
  app.add_option("--kv-dtype", options.kv_dtype,
                 "Type of the key-value cache; auto: f32 for f32 weights, else bf16; fp8 halves "
                 "the latents at a loss")
      ->check(CLI::IsMember({"auto", "f32", "bf16", "fp8"}))
      ->capture_default_str();
}

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("MODEL", options.model,
                 "Model directory: config.json and safetensors, for text also tokenizer.json, for "
                 "chat a chat template")
      ->type_name("DIR")
      ->required();
  add_numeric_options(app, options);
}

Command add_inspect(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "inspect",
      "What is in a checkpoint, which rule decided each tensor's format, and what does not fit.\n"
      "Reads headers only. Exit status 1: the model could not be loaded as it is; with --for also: "
      "that program would\nnot load it right, or it could not be checked.");
  auto options = std::make_shared<InspectOptions>();
  app->add_option("MODEL", options->model.model,
                  "Model directory, or a config.json alone to count what it describes")
      ->required();
  app->add_flag("--kernels", options->kernels,
                "Show which kernel would run each operation, and why");
  app->add_option("--for", options->loader,
                  "Would this program load every tensor in the format that the file has? "
                  "sglang-0.5.13 is sglang before it knew the MTP layer of GLM-5.2")
      ->check(CLI::IsMember({"sglang", "sglang-0.5.13", "vllm"}));
  add_numeric_options(*app, options->model);
  return {app, [options](const CommonOptions& common) { return inspect(common, *options); }};
}

Command add_score(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "score", "How likely a model finds given token ids, and what it would say next.");
  auto options = std::make_shared<ScoreOptions>();
  add_model_options(*app, options->model);
  app->add_option("--token-ids", options->token_ids,
                  "JSON file with an array of token ids, or an array of such arrays")
      ->required();
  app->add_option(
      "--logits", options->logits,
      "Write float32 logits [tokens, vocabulary] to this file, whose name ends in .npy; "
      "with several sequences, a directory of 0.npy, 1.npy, ...");
  app->add_option("--draft", options->draft_tokens,
                  "Also draft this many tokens with the MTP layer, after the most likely next one")
      ->check(CLI::Range(1, 64));
  return {app, [options](const CommonOptions& common) { return score(common, *options); }};
}

// "ID=BIAS"
std::optional<engine::TokenBias> parse_bias(const std::string& text) {
  engine::TokenBias bias;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%d=%lf%c", &bias.id, &bias.bias, &rest) != 2) return std::nullopt;
  return bias;
}

void add_logit_bias(CLI::App& app, engine::SamplingParams& sampling) {
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias",
         [&sampling](const std::vector<std::string>& entries) {
           for (const std::string& entry : entries) {
             sampling.logit_bias.push_back(*parse_bias(entry));
           }
         },
         "Added to the logit of a token, as ID=BIAS with a bias from -100 to 100; may be repeated")
      ->type_name("ID=BIAS")
      ->check([](const std::string& entry) {
        return parse_bias(entry) ? "" : entry + ": expected a token id, =, and a number";
      })
      ->allow_extra_args(false);
}

void add_sampling_options(CLI::App& app, engine::SamplingParams& sampling) {
  const auto add_number = [&app](const char* name, double& value, double low, double high,
                                 const char* help) {
    app.add_option(name, value, help)
        ->check(CLI::Range(low, high))
        ->check(not_nan)
        ->capture_default_str();
  };
  add_number("--temperature", sampling.temperature, 0, 100,
             "0 takes the most likely token; otherwise draws after dividing logits by it");
  app.add_option("--top-k", sampling.top_k, "Draw among so many likeliest tokens; 0: among all")
      ->check(CLI::Range(0, 1 << 24))
      ->capture_default_str();
  add_number("--top-p", sampling.top_p, 0, 1,
             "Draw among the likeliest tokens that together have this probability; 1: among all");
  add_number("--min-p", sampling.min_p, 0, 1,
             "Draw among tokens at least so many times as likely as the likeliest");
  add_number("--repetition-penalty", sampling.repetition_penalty, 0, 100,
             "Above 1 makes tokens of prompt and output less likely (a factor of their logits)");
  add_number("--presence-penalty", sampling.presence_penalty, -2, 2,
             "Taken from the logits of tokens that the output has");
  add_number("--frequency-penalty", sampling.frequency_penalty, -2, 2,
             "The same, times how often it has them");
  add_logit_bias(app, sampling);
  app.add_option("--seed", sampling.seed, "The same seed gives the same tokens")
      ->check(not_negative)
      ->capture_default_str();
}

void add_engine_choices(CLI::App& app, EngineChoices& choices, const char* kv_tokens_help) {
  app.add_option(
         "--speculative-tokens", choices.speculative_tokens,
         "Tokens that the MTP layer drafts a step, to be verified together; the output is "
         "the same for all. auto: by measured speed, where the model has that layer; 0: none")
      ->type_name("K|auto")
      ->capture_default_str();
  app.add_option("--kv-tokens", choices.kv_tokens, kv_tokens_help)
      ->check(CLI::Range(int64_t{16}, int64_t{1} << 30));
  app.add_flag("--no-prefix-cache", choices.no_prefix_cache,
               "Compute every prompt whole, also where the cache holds its beginning");
  app.add_option("--simulate-acceptance", choices.simulated_acceptance,
                 "For benchmarks on weights that ingot synth made: how often the first draft of a "
                 "chain counts as right, the second if the first was, and so on")
      ->type_name("A1,A2,..")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_nan);
}

void add_max_tokens(CLI::App& app, int64_t& max_tokens) {
  app.add_option("--max-tokens", max_tokens, "Most tokens to generate")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
}

// What ends an output, and what is told beside its tokens.
void add_output_options(CLI::App& app, GenerateOptions& options) {
  app.add_option("--min-tokens", options.min_tokens, "Tokens before which nothing ends it")
      ->check(CLI::Range(0, 1 << 24));
  app.add_option("--stop", options.stop_strings,
                 "A text that ends the output and is not part of it; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.add_option("--stop-token-id", options.stop_token_ids,
                 "A token that ends the output and is not part of it; may be repeated")
      ->type_name("ID")
      ->allow_extra_args(false)
      ->check(CLI::Range(0, INT32_MAX));
  app.add_flag("--ignore-eos", options.ignore_eos,
               "Go on after the model's end-of-sequence tokens");
  app.add_option("--logprobs", options.sampling.num_top_logprobs,
                 "With --json: the logprob of each token, and of as many likeliest ones")
      ->type_name("N")
      ->check(CLI::Range(0, engine::kTopLogprobsMax));
  app.add_flag("--prompt-logprobs", options.prompt_logprobs,
               "With --logprobs: those of the prompt's tokens too");
}

// `of_prompts`: options that a file of requests has fields for instead. The seed is for both.
void add_request_file_options(CLI::App& app, GenerateOptions& options,
                              const std::vector<CLI::Option*>& of_prompts) {
  CLI::Option* requests =
      app.add_option("--requests", options.requests,
                     "Answer the requests of this file, in OpenAI's batch format: a line of JSON "
                     "each, with custom_id, method, url and body, for /v1/chat/completions and "
                     "/v1/completions")
          ->type_name("FILE");
  for (CLI::Option* option : of_prompts) {
    if (option->get_name() != "--seed") requests->excludes(option);
  }
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->needs(requests);
  };
  add("--out", options.out,
      "File for the answers, a line each, in the order of the requests. Until the last is there it "
      "is called FILE.partial; a run that was stopped or killed goes on when it is repeated")
      ->type_name("FILE");
  add("--max-running", options.max_running, "Sequences that are computed at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  add("--max-step-tokens", options.max_step_tokens, "Tokens that one step computes at most")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  add("--served-model-name", options.served_model_name,
      "Name that the requests' \"model\" may have; default: that of the directory")
      ->type_name("NAME");
}

Command add_generate(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "generate",
      "Continue a prompt, or answer a file of requests.\n"
      "Exit status 1: some lines of the file have an error instead of an answer, or it was\n"
      "interrupted; the same command goes on.");
  auto options = std::make_shared<GenerateOptions>();
  add_model_options(*app, options->model);
  const size_t num_shared = app->get_options().size();
  app->add_option("--prompt", options->prompt,
                  "Text to continue as it is, without the chat template");
  app->add_option("--prompt-file", options->prompt_file, "A file with such a text")
      ->type_name("FILE");
  app->add_option("--token-ids", options->token_ids, "JSON file with an array of token ids")
      ->type_name("FILE");
  app->add_flag("--control-tokens", options->control_tokens,
                "Take markers such as <|user|> in the prompt for control tokens; otherwise they "
                "are text");
  add_max_tokens(*app, options->max_tokens);
  add_output_options(*app, *options);
  add_sampling_options(*app, options->sampling);
  const std::vector<CLI::Option*> all = app->get_options({});
  const std::vector<CLI::Option*> of_prompts(all.begin() + static_cast<ptrdiff_t>(num_shared),
                                             all.end());
  add_engine_choices(*app, options->engine,
                     "Tokens that the cache holds; default: what the prompt and --max-tokens need, "
                     "with --requests 80% of what memory leaves");
  add_request_file_options(*app, *options, of_prompts);
  return {app, [options](const CommonOptions& common) { return generate(common, *options); }};
}

Command add_chat(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "chat",
      "Talk with a model. A line is a message, and /help lists commands; input that is piped is\n"
      "answered line by line. With --json an answer is a line of JSON.");
  auto options = std::make_shared<ChatOptions>();
  add_model_options(*app, options->model);
  app->add_option("MESSAGE", options->message, "Answer this message and end");
  CLI::Option* message = app->get_option("MESSAGE");
  CLI::Option* system = app->add_option("--system", options->system, "How the model is to behave");
  app->add_option("--messages", options->messages,
                  "Answer the conversation of this JSON file, tools included, and end; its form is "
                  "that of ingot tokenize --messages")
      ->type_name("FILE")
      ->excludes(message)
      ->excludes(system);
  app->add_option("--thinking", options->thinking,
                  "Whether the model reasons before it answers; auto: what its template prefers")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  app->add_flag("--hide-thinking", options->hide_thinking, "Show the answer without the reasoning");
  app->add_option("--reasoning-effort", options->reasoning_effort,
                  "Passed on to the model's chat template, which knows words such as high or max");
  add_max_tokens(*app, options->max_tokens);
  add_engine_choices(*app, options->engine,
                     "Tokens that a conversation may have; default: the model's positions, but at "
                     "most 32768");
  add_sampling_options(*app, options->sampling);
  return {app, [options](const CommonOptions& common) { return chat(common, *options); }};
}

Command add_tokenize(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "tokenize", "What a text or a conversation is to a model: its token ids, and back.");
  auto options = std::make_shared<TokenizeOptions>();
  app->add_option("MODEL", options->model, "Model directory; only its text files are read")
      ->type_name("DIR")
      ->required();
  app->add_option("--text", options->text, "A text");
  app->add_option("--file", options->file, "A file of text")->type_name("FILE");
  app->add_option("--messages", options->messages,
                  "JSON file: an array of messages, or an object with messages, tools, "
                  "documents, add_generation_prompt, chat_template_kwargs")
      ->type_name("FILE");
  app->add_option("--jsonl", options->lines,
                  "A file with a JSON string a line; prints an array of ids a line")
      ->type_name("FILE");
  app->add_option("--token-ids", options->token_ids, "JSON file with ids, whose text is printed")
      ->type_name("FILE");
  app->add_flag("--control-tokens", options->control_tokens,
                "Take markers such as <|user|> in the text for control tokens; otherwise they "
                "are text");
  return {app, [options](const CommonOptions& common) { return tokenize(common, *options); }};
}

Command add_synth(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "synth", "Make a checkpoint of random weights at the real shapes of a config.");
  auto options = std::make_shared<SynthOptions>();
  app->add_option("DESTINATION", options->destination, "Directory to make")->required();
  app->add_option("--config", options->config, "A config.json, or one of " + model::named_configs())
      ->required();
  app->add_option("--dtype", options->dtype, "Stored type of the weights")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app->add_option("--recipe", options->recipe,
                  fmt::format("Round the weights as ingot quantize would, by a TOML file or one of "
                              "{}. Takes the space of unrounded weights until it is done",
                              fmt::join(quantize::recipe_names(), ", ")))
      ->type_name("NAME|FILE");
  app->add_option("--layers", options->layers,
                  "Main layers to keep: one dense, then MoE, indexers full, shared, shared, shared")
      ->check(CLI::Range(1, 1024));
  app->add_option("--experts", options->experts, "Routed experts a layer to keep")
      ->check(CLI::Range(1, 8192));
  app->add_option("--mtp", options->mtp, "Whether to make the MTP layer")
      ->check(CLI::IsMember({"none", "keep"}))
      ->capture_default_str();
  app->add_option("--seed", options->seed, "The same seed gives the same weights")
      ->check(not_negative)
      ->capture_default_str();
  return {app, [options](const CommonOptions& common) { return synth(common, *options); }};
}

CLI::Option* add_counts(CLI::App& app, const char* name, std::vector<int64_t>& values,
                        const char* help, int64_t least) {
  return app.add_option(name, values, help)
      ->type_name("A,B,..")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(least, int64_t{1} << 24))
      ->capture_default_str();
}

void add_bench_tests(CLI::App& app, BenchEngineOptions& options) {
  add_counts(app, "--prefill", options.prefill,
             "Tokens of a prompt, each number a test from an empty cache; 0: none", 0);
  add_counts(app, "--depth", options.depth, "Positions in the cache when decoding begins", 0);
  add_counts(app, "--batch", options.batch, "Sequences that are decoded together", 1)
      ->check(CLI::Range(1, 4096));
  app.add_option("--decode", options.decode,
                 "Tokens to decode of each sequence, at every depth and batch; 0: none")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  app.add_option("--max-step-tokens", options.max_step_tokens,
                 "Tokens that one step computes at most; a longer prompt takes several")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "How often each test is timed")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_flag(
      "--cpu-time", options.cpu_time,
      "Count the processor time that was had and not the time that passed, probes too: for "
      "a machine with other work; needs --threads 1");
}

Command add_bench_engine(CLI::App& bench) {
  CLI::App* app = bench.add_subcommand(
      "engine",
      "How fast a model's steps are on this machine, and how far from what the machine can do.\n"
      "Steps are timed directly, on random tokens, without sampling. Probes of the memory's and "
      "the\n"
      "processor's rates alternate with them; the floor is the least time that these leave for "
      "the\n"
      "bytes and multiply-accumulates (macs) of a step. No tokenizer is needed.");
  auto options = std::make_shared<BenchEngineOptions>();
  app->add_option("MODEL", options->model.model,
                  "Model directory: config.json and safetensors; ingot synth makes such")
      ->type_name("DIR")
      ->required();
  add_numeric_options(*app, options->model);
  add_bench_tests(*app, *options);
  app->add_option(
         "--speculative-tokens", options->speculative_tokens,
         "Also time drafting and verifying 1 to K tokens with the MTP layer; its rows then "
         "are part of all other tests")
      ->type_name("K")
      ->check(CLI::Range(0, 16))
      ->capture_default_str();
  app->add_option("--simulate-acceptance", options->simulated_acceptance,
                  "How often the first draft of a chain is right, the second if the first was, and "
                  "so on: shows what speculation would gain")
      ->type_name("A1,A2,..")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_nan);
  app->add_option("--seed", options->seed, "The same seed gives the same tokens")
      ->check(not_negative)
      ->capture_default_str();
  auto allowed = std::make_shared<bool>(false);
  app->add_flag("--allow-slow-kernels", *allowed,
                "Measure also where the reference kernels do more than 1% of a step");
  return {app, [options, allowed](const CommonOptions& common) {
            using enum engine::RunnerOptions::SlowKernels;
            options->model.slow_kernels = *allowed ? kWarn : kRefuse;
            return bench_engine(common, *options);
          }};
}

CLI::App& add_bench(CLI::App& program) {
  CLI::App* app = program.add_subcommand("bench", "How fast a model runs here.");
  app->require_subcommand(1);
  app->fallthrough();
  return *app;
}

Command add_quantize(CLI::App& program) {
  CLI::App* app =
      program.add_subcommand("quantize",
                             "Round a model's weights to MXFP4 or FP8, in the format "
                             "that AMD Quark exports and sglang and "
                             "vLLM load.\n"
                             "An interrupted run goes on where it stopped when the "
                             "command is repeated. Exit status 1: it\n"
                             "is written, or would be, and a program that the recipe is "
                             "meant for would not load it right.");
  auto options = std::make_shared<QuantizeOptions>();
  app->add_option("SOURCE", options->source,
                  "Model directory: config.json and safetensors in bf16, f16, f32 or FP8")
      ->type_name("DIR")
      ->required();
  app->add_option("DESTINATION", options->destination,
                  "Directory to make, or that of an interrupted run; not needed with --dry-run, "
                  "which else says what a run would meet there")
      ->type_name("DIR");
  app->add_option("--recipe", options->recipe,
                  fmt::format("What becomes of which layer: a TOML file, or one of {}; default: by "
                              "the model's family",
                              fmt::join(quantize::recipe_names(), ", ")))
      ->type_name("NAME|FILE");
  app->add_option("--dequant", options->dequantization,
                  "What values of an FP8 source are rounded to first; Quark 0.13 takes fp32, 0.12 "
                  "took bf16")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  app->add_option("--scale-search", options->scale_search,
                  "How the scale of 32 values is chosen; even: as Quark, from the largest; mse: "
                  "the neighbour with the least squared error")
      ->check(CLI::IsMember({"even", "mse"}))
      ->capture_default_str();
  app->add_option(
         "--memory", options->memory_bytes,
         "Bytes of buffers in all, such as 512MiB or 1GiB; default: 1GiB. Plan and report take "
         "about 4 KB a tensor besides")
      ->check(not_negative)
      ->transform(CLI::AsSizeValue(false));
  app->add_option("--report", options->report,
                  "Also write the report, a row a tensor, to this file, whose name ends in .json")
      ->type_name("FILE");
  app->add_flag("--dry-run", options->dry_run,
                "Show what would be done and which programs would load it, and do nothing");
  return {app, [options](const CommonOptions& common) { return quantize(common, *options); }};
}

}  // namespace

int run(int argc, const char* const* argv) {
  CLI::App program(
      "Ingot takes a GLM-5-class mixture-of-experts model from published weights to tokens.");
  program.name("ingot");
  program.set_version_flag("--version", version_text());
  program.require_subcommand(1);
  program.fallthrough();
  program.set_config("--config", "", "Read options from a TOML file; [COMMAND] holds a command's");
  program.allow_config_extras(CLI::config_extras_mode::error);
  CommonOptions common;
  program.add_option("--threads", common.threads, "Threads; default: one for each usable core")
      ->envname("INGOT_THREADS")
      ->check(CLI::Range(1, 1024));
  program.add_flag("--json", common.json, "Print the result as JSON");
  const std::vector<Command> commands = {
      add_inspect(program),  add_score(program),
      add_generate(program), add_chat(program),
      add_tokenize(program), add_synth(program),
      add_quantize(program), add_bench_engine(add_bench(program))};
  for (const Command& command : commands) {
    command.app->footer("Also --json, --threads N and --config FILE; see ingot --help.");
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& call) {
    return program.exit(call);
  } catch (const CLI::CallForAllHelp& call) {
    return program.exit(call);
  } catch (const CLI::CallForVersion& call) {
    return program.exit(call);
  } catch (const CLI::ParseError& failure) {
    if (program.get_subcommands().empty() && !program.remaining().empty()) {
      return fail(fmt::format("no command or option \"{}\"; see ingot --help",
                              program.remaining().front()));
    }
    if (failure.get_name() == "ConfigError" || failure.get_name() == "FileError") {
      return fail(fmt::format("--config: not readable as a TOML file of ingot's options: {}",
                              failure.what()));
    }
    const auto chosen = program.get_subcommands();
    return fail(fmt::format("{}; see ingot {}--help", failure.what(),
                            chosen.empty() ? "" : chosen.front()->get_name() + " "));
  }
  common.targets = environment("INGOT_TARGETS");
  try {
    for (const Command& command : commands) {
      if (!command.app->parsed()) continue;
      const base::Result<int> status = command.run(common);
      if (!status) return fail(status.error().message);
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
        return fail(fmt::format("cannot write to standard output: {}",
                                errno == 0 ? "it is closed or full" : std::strerror(errno)));
      }
      return *status;
    }
  } catch (const std::bad_alloc&) {
    return fail("out of memory; free memory or use a smaller model");
  } catch (const std::exception& failure) {  // of the libraries, as when printing to a full disk
    return fail(failure.what());
  }
  return fail("no command; see ingot --help");
}

}  // namespace ingot::cli
