#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/progress.h"
#include "base/provenance.h"
#include "cli/engine_session.h"
#include "cli/generation_report.h"
#include "cli/options.h"
#include "cli/request_file.h"
#include "cli/terminal.h"
#include "engine/score.h"
#include "text/answer_pieces.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

constexpr uint64_t kPromptBytesMax = 256 << 20;
constexpr int32_t kStepTokens = 256;

// The prompt, and the tokenizer when it is one of letters.
struct Prompt {
  TokenIds ids;
  std::optional<text::Tokenizer> tokenizer;
};

base::Result<Prompt> read_prompt(const GenerateOptions& options) {
  const int given =
      options.prompt.has_value() + !options.prompt_file.empty() + !options.token_ids.empty();
  if (given != 1) {
    return base::error(
        "give one of --prompt, --prompt-file, --token-ids and --requests; see ingot generate "
        "--help");
  }
  Prompt prompt;
  if (!options.token_ids.empty()) {
    prompt.ids = TRY(read_token_ids(options.token_ids));
    if (prompt.ids.sequences.size() != 1) {
      return base::error("{}: {} sequences; generate continues one, ingot score takes several",
                         options.token_ids.string(), prompt.ids.sequences.size());
    }
    return prompt;
  }
  const std::string source = options.prompt ? "--prompt" : options.prompt_file.string();
  const std::string text = options.prompt
                               ? *options.prompt
                               : TRY(base::read_text_file(options.prompt_file, kPromptBytesMax));
  if (text.empty()) return base::error("{}: empty; there is nothing to continue", source);
  const model::ModelConfig config = TRY(model::load_model_config(options.model.model));
  prompt.tokenizer = TRY(open_tokenizer(options.model.model, config));
  auto ids = prompt.tokenizer->encode(text, options.control_tokens ? text::ControlTokens::kRecognise
                                                                   : text::ControlTokens::kAsText);
  if (!ids) return base::error("{}: {}", source, ids.error().message);
  const auto prefix = prompt.tokenizer->prefix_ids();
  ids->insert(ids->begin(), prefix.begin(), prefix.end());
  prompt.ids = {.path = source, .sequences = {std::move(*ids)}};
  return prompt;
}

// A token and its logprob, with those that were the likeliest there.
json::object logprob_json(const engine::TokenLogprobs& told) {
  json::array top;
  for (const engine::TokenLogprob& token : told.top) {
    top.push_back(json::object{{"id", token.id}, {"logprob", token.logprob}});
  }
  return {{"id", told.token.id}, {"logprob", told.token.logprob}, {"top", std::move(top)}};
}

json::array logprobs_json(const std::vector<engine::TokenLogprobs>& all) {
  json::array list;
  for (const engine::TokenLogprobs& told : all) list.push_back(logprob_json(told));
  return list;
}

// What the engine told of the request, gathered.
struct Output {
  std::vector<int32_t> token_ids;
  std::string text;
  std::vector<engine::TokenLogprobs> logprobs;
  std::vector<engine::TokenLogprobs> prompt_logprobs;
};

void print_json(const Output& output, const engine::EngineReport& report,
                const GenerateOptions& options, const ModelSession& session, bool has_text) {
  json::object document = base::result_document(
      "generate", provenance_of(session, options.engine, options.sampling.seed));
  document["token_ids"] = json::array(output.token_ids.begin(), output.token_ids.end());
  document["text"] = has_text ? json::value(output.text) : nullptr;
  document["finish_reason"] = name(report.reason);
  if (options.sampling.num_top_logprobs) document["logprobs"] = logprobs_json(output.logprobs);
  if (options.prompt_logprobs) {
    document["prompt_logprobs"] = logprobs_json(output.prompt_logprobs);
  }
  document["usage"] = usage_json(report);
  document["timings"] = timings_json(report);
  fmt::print("{}", base::pretty_json(document));
}

// Checks what can be checked before a byte of weights is read.
base::Status check_options(const Prompt& prompt, const CommonOptions& common,
                           const GenerateOptions& options, const model::ModelConfig& config) {
  if (const auto status = engine::check_sequences(prompt.ids.sequences, config); !status) {
    return base::error("{}: {}", prompt.ids.path.string(), status.error().message);
  }
  if (!options.stop_strings.empty() && !prompt.tokenizer) {
    return base::error("--stop: with --token-ids no text is made; use --stop-token-id");
  }
  if (std::ranges::find(options.stop_strings, "") != options.stop_strings.end()) {
    return base::error("--stop: the text is empty, which would end every output");
  }
  if (options.sampling.num_top_logprobs && !common.json) {
    return base::error("--logprobs: they are shown with --json alone; add it");
  }
  if (options.prompt_logprobs && !options.sampling.num_top_logprobs) {
    return base::error("--prompt-logprobs: say with --logprobs how many of each position");
  }
  return {};
}

// The tokens, prompt and output, that the engine needs room for.
base::Result<int64_t> context_tokens(const Prompt& prompt, const GenerateOptions& options,
                                     const model::ModelConfig& config) {
  const auto num_prompt_tokens = std::ssize(prompt.ids.sequences.front());
  if (num_prompt_tokens >= config.max_position_embeddings) {
    return base::error(
        "{}: {} tokens fill all {} positions of the model; there is no room to go on",
        prompt.ids.path.string(), num_prompt_tokens, config.max_position_embeddings);
  }
  const int64_t wanted =
      std::min(num_prompt_tokens + options.max_tokens, config.max_position_embeddings);
  if (options.engine.kv_tokens > 0 && options.engine.kv_tokens < wanted) {
    return base::error(
        "--kv-tokens {}: the prompt has {} tokens and --max-tokens is {}, which takes {}; give "
        "more or ask for fewer",
        options.engine.kv_tokens, num_prompt_tokens, options.max_tokens, wanted);
  }
  return wanted;
}

engine::EngineRequest engine_request(const Prompt& prompt, const GenerateOptions& options,
                                     int64_t num_context_tokens) {
  engine::EngineRequest request{.prompt = prompt.ids.sequences.front(),
                                .min_tokens = options.min_tokens,
                                .sampling = options.sampling,
                                .ignore_eos = options.ignore_eos,
                                .stop_token_ids = options.stop_token_ids,
                                .stop_strings = options.stop_strings,
                                .wants_prompt_logprobs = options.prompt_logprobs};
  request.max_tokens = static_cast<int32_t>(num_context_tokens - std::ssize(request.prompt));
  return request;
}

}  // namespace

base::Result<int> generate(const CommonOptions& common, const GenerateOptions& options) {
  if (!options.requests.empty()) return answer_request_file(common, options);
  const Prompt prompt = TRY(read_prompt(options));
  const model::ModelConfig config = TRY(model::load_model_config(options.model.model));
  TRY(check_options(prompt, common, options, config));
  const int64_t num_context_tokens = TRY(context_tokens(prompt, options, config));
  const auto num_prompt_tokens = std::ssize(prompt.ids.sequences.front());
  EngineChoices choices = options.engine;
  if (choices.kv_tokens == 0) choices.kv_tokens = num_context_tokens;
  const auto session =
      TRY(open_engine(common, options.model, choices,
                      {.max_step_tokens = kStepTokens, .max_context = num_context_tokens},
                      prompt.tokenizer ? &*prompt.tokenizer : nullptr,
                      {.memory_remedy = "ask for less with --max-tokens or --kv-tokens"}));
  base::Progress progress("prompt", static_cast<uint64_t>(num_prompt_tokens),
                          base::Progress::Unit::kTokens, session->model->clock);
  std::optional<text::AnswerPieces> text;
  if (prompt.tokenizer) {
    text.emplace(*prompt.tokenizer, text::AnswerStops{.strings = options.stop_strings,
                                                      .min_tokens = options.min_tokens});
  }
  Output output;
  const auto say = [&](const std::vector<text::AnswerPiece>& pieces) {
    for (const text::AnswerPiece& piece : pieces) {
      output.text += piece.text;
      if (!common.json) write_out(stdout_is_terminal() ? terminal_safe(piece.text) : piece.text);
    }
  };
  const auto take = [&](const engine::EngineUpdate& update) -> base::Status {
    progress.update(static_cast<uint64_t>(update.num_prompt_tokens_done));
    for (const int32_t token : update.tokens) {
      output.token_ids.push_back(token);
      if (text) say(TRY(text->push(token)));
    }
    std::ranges::copy(update.logprobs, std::back_inserter(output.logprobs));
    std::ranges::copy(update.prompt_logprobs, std::back_inserter(output.prompt_logprobs));
    return {};
  };
  const engine::EngineReport report = TRY(run_request(
      *session->engine, engine_request(prompt, options, num_context_tokens), {.on_update = take}));
  if (text) say(text->finish());
  if (common.json) {
    print_json(output, report, options, *session->model, text.has_value());
    return 0;
  }
  if (!text) write_out(fmt::format("{}", fmt::join(output.token_ids, " ")));
  write_out("\n");
  base::log_info(generation_summary(report));
  return 0;
}

}  // namespace ingot::cli
