#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "base/provenance.h"
#include "cli/model_session.h"
#include "cli/options.h"
#include "engine/generation.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

double tokens_per_second(size_t tokens, base::Duration duration) {
  const double seconds = base::seconds(duration);
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

// Tokens after the first took the decode time.
size_t decoded(const engine::Generation& generation) {
  return generation.token_ids.empty() ? 0 : generation.token_ids.size() - 1;
}

void print_json(const engine::Generation& generation, const GenerateOptions& options,
                size_t prompt_tokens, const engine::LoadedModel& model, int threads) {
  json::object document = base::result_document("generate", {.model_hash = model.hash(),
                                                             .threads = threads,
                                                             .arithmetic = model.arithmetic(),
                                                             .seed = options.sampling.seed});
  json::array ids;
  for (const int32_t id : generation.token_ids) ids.emplace_back(id);
  const size_t completion_tokens = generation.token_ids.size();
  document["token_ids"] = std::move(ids);
  document["text"] = nullptr;
  document["finish_reason"] = name(generation.finish_reason);
  document["usage"] = json::object{{"prompt_tokens", prompt_tokens},
                                   {"completion_tokens", completion_tokens},
                                   {"total_tokens", prompt_tokens + completion_tokens},
                                   {"draft_tokens", 0},
                                   {"accepted_tokens", 0}};
  document["timings"] = json::object{
      {"prefill_seconds", base::seconds(generation.prefill)},
      {"decode_seconds", base::seconds(generation.decode)},
      {"prefill_tokens_per_second", tokens_per_second(prompt_tokens, generation.prefill)},
      {"decode_tokens_per_second", tokens_per_second(decoded(generation), generation.decode)}};
  fmt::print("{}", base::pretty_json(document));
}

void print_text(const engine::Generation& generation, size_t prompt_tokens) {
  fmt::print("{}\n", fmt::join(generation.token_ids, " "));
  if (generation.token_ids.empty()) return;
  base::log_info(fmt::format(
      "{} prompt tokens at {:.1f} tokens/s, then {} tokens at {:.1f} tokens/s; finished: {}",
      prompt_tokens, tokens_per_second(prompt_tokens, generation.prefill),
      generation.token_ids.size(), tokens_per_second(decoded(generation), generation.decode),
      name(generation.finish_reason)));
}

}  // namespace

base::Result<int> generate(const CommonOptions& common, const GenerateOptions& options) {
  TokenIds ids = TRY(read_token_ids(options.token_ids));
  if (ids.sequences.size() != 1) {
    return base::error("{}: {} sequences; generate continues one, ingot score takes several",
                       options.token_ids.string(), ids.sequences.size());
  }
  const auto session = TRY(open_session(common, options.model, std::move(ids)));
  const engine::LoadedModel& model = *session->model;
  const engine::GenerationRequest request{.prompt = session->sequences.front(),
                                          .max_tokens = options.max_tokens,
                                          .sampling = options.sampling};
  const auto executor = TRY(engine::ModelExecutor::create(
      model, *session->team, engine::generation_capacity(request, model.config())));
  const engine::Generation generation = TRY(engine::generate(*executor, request, session->clock));
  if (common.json) {
    print_json(generation, options, request.prompt.size(), model, session->team->size());
  } else {
    print_text(generation, request.prompt.size());
  }
  return 0;
}

}  // namespace ingot::cli
