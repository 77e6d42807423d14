#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "cli/options.h"
#include "engine/model_executor.h"

namespace ingot::cli {

// What a command that runs a model on token ids starts from.
struct ModelSession {
  base::SystemClock clock;
  std::unique_ptr<base::ThreadTeam> team;
  std::unique_ptr<engine::LoadedModel> model;
  std::vector<std::vector<int32_t>> sequences;
};

// Reads and checks the ids, before a byte of weights is read, and then loads the model. Says on
// stderr what is worth knowing about it. Errors name the file that is wrong.
base::Result<std::unique_ptr<ModelSession>> open_session(const CommonOptions& common,
                                                         const ModelOptions& options,
                                                         const std::filesystem::path& token_ids);

// A JSON array of ids is one sequence; an array of arrays is several.
base::Result<std::vector<std::vector<int32_t>>> read_token_ids(const std::filesystem::path& path);

}  // namespace ingot::cli
