#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/load_plan.h"
#include "model/model_config.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace ingot::engine {

// What stands between a model and people: its tokenizer, and its chat template where it has one.
// Immutable.
struct ModelText {
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template;

  // Errors: no tokenizer.json, or files that cannot be read or honoured whole.
  static base::Result<ModelText> load(const std::filesystem::path& directory);

  // Where they and the model do not fit together. An error among the findings means that the model
  // must not be run on text.
  std::vector<model::Finding> compare_with(const model::ModelConfig& config) const;
};

// ModelText::load, and an error when a finding is one.
base::Result<ModelText> load_model_text(const std::filesystem::path& directory,
                                        const model::ModelConfig& config);

}  // namespace ingot::engine
