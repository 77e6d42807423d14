#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "cli/options.h"
#include "engine/model_runner.h"
#include "engine/model_text.h"
#include "scheduler/draft_depth.h"

namespace ingot::cli {

// What a command that runs a model on token ids starts from.
struct ModelSession {
  base::SystemClock clock;
  std::unique_ptr<base::ThreadTeam> team;
  std::unique_ptr<engine::LoadedModel> model;
  std::vector<std::vector<int32_t>> sequences;
};

// Token ids as a user gave them, and the file that errors name.
struct TokenIds {
  std::filesystem::path path;
  std::vector<std::vector<int32_t>> sequences;
};

// A JSON array of ids is one sequence; an array of arrays is several.
base::Result<TokenIds> read_token_ids(const std::filesystem::path& path);

// Tokenizer and chat template of a model, or the tokenizer alone, compared with its config: warns
// of what does not fit, and refuses what cannot work.
base::Result<engine::ModelText> open_model_text(const std::filesystem::path& directory,
                                                const model::ModelConfig& config);
base::Result<text::Tokenizer> open_tokenizer(const std::filesystem::path& directory,
                                             const model::ModelConfig& config);

// Loads the model, with its MTP layer where drafts are wanted; with kAuto only if it has one. Says
// on stderr what is worth knowing about it.
base::Result<std::unique_ptr<ModelSession>> open_session(const CommonOptions& common,
                                                         const ModelOptions& options,
                                                         scheduler::SpeculationMode speculation);

// Checks the ids against the config, before a byte of weights is read, and then does the same; with
// the MTP layer when drafts are asked for.
base::Result<std::unique_ptr<ModelSession>> open_session(const CommonOptions& common,
                                                         const ModelOptions& options, TokenIds ids,
                                                         int32_t draft_tokens);

}  // namespace ingot::cli
