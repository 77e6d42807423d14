#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/progress.h"
#include "base/provenance.h"
#include "cli/generation_report.h"
#include "cli/model_session.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "engine/generation.h"
#include "text/detokenizer.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

constexpr uint64_t kPromptBytesMax = 256 << 20;

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
        "give one of --prompt, --prompt-file and --token-ids; see ingot generate --help");
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

void print_json(const engine::Generation& generation, const GenerateOptions& options,
                const ModelSession& session, json::value text) {
  const size_t prompt_tokens = session.sequences.front().size();
  json::object document =
      base::result_document("generate", {.model_hash = session.model->hash(),
                                         .threads = session.team->size(),
                                         .arithmetic = session.model->arithmetic(),
                                         .seed = options.sampling.seed});
  document["token_ids"] = json::array(generation.token_ids.begin(), generation.token_ids.end());
  document["text"] = std::move(text);
  document["finish_reason"] = name(generation.finish_reason);
  document["usage"] = usage_json(generation, prompt_tokens);
  document["timings"] = timings_json(generation, prompt_tokens);
  fmt::print("{}", base::pretty_json(document));
}

}  // namespace

base::Result<int> generate(const CommonOptions& common, const GenerateOptions& options) {
  Prompt prompt = TRY(read_prompt(options));
  const auto session = TRY(open_session(common, options.model, std::move(prompt.ids)));
  const engine::LoadedModel& model = *session->model;
  engine::GenerationRequest request{.prompt = session->sequences.front(),
                                    .max_tokens = options.max_tokens,
                                    .sampling = options.sampling};
  base::Progress progress("prompt", request.prompt.size(), base::Progress::Unit::kTokens,
                          session->clock);
  engine::GenerationHooks hooks{.on_prompt = [&](size_t count) { progress.update(count); }};
  std::optional<text::Detokenizer> detokenizer;
  std::string text;
  const auto say = [&](std::string_view piece) {
    text += piece;
    if (!common.json) write_out(stdout_is_terminal() ? terminal_safe(piece) : std::string(piece));
  };
  if (prompt.tokenizer) {
    request.drawable_ids = engine::drawable_ids(*prompt.tokenizer);
    detokenizer.emplace(*prompt.tokenizer, text::SpecialTokens::kKeep);
    hooks.on_token = [&](int32_t token) -> base::Status {
      say(TRY(detokenizer->push(token)).text);
      return {};
    };
  }
  const auto executor = TRY(engine::ModelRunner::create(
      model, *session->team, engine::generation_capacity(request, model.config())));
  const engine::Generation generation =
      TRY(engine::Generator(*executor, session->clock).generate(request, hooks));
  if (detokenizer) say(detokenizer->finish());
  if (common.json) {
    print_json(generation, options, *session, prompt.tokenizer ? json::value(text) : nullptr);
    return 0;
  }
  if (!prompt.tokenizer) write_out(fmt::format("{}", fmt::join(generation.token_ids, " ")));
  write_out("\n");
  base::log_info(generation_summary(generation, request.prompt.size()));
  return 0;
}

}  // namespace ingot::cli
