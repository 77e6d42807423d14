#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/token_mask.h"
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

  // Errors: no tokenizer.json, and files that cannot be read or followed whole.
  static base::Result<ModelText> load(const std::filesystem::path& directory);

  // Where they and the model do not fit together. An error among the findings means that the model
  // must not be run on text.
  std::vector<model::Finding> compare_with(const model::ModelConfig& config) const;
};

// The tokenizer alone, for what needs no template. Errors: there is none, or see Tokenizer::load.
base::Result<text::Tokenizer> load_tokenizer(const std::filesystem::path& directory);

// The ids that the tokenizer has a token for: a model has some more, which stand for nothing.
TokenMask drawable_ids(const text::Tokenizer& tokenizer, int64_t vocab_size);

// Where a tokenizer and the model do not fit together.
std::vector<model::Finding> compare_tokenizer(const text::Tokenizer& tokenizer,
                                              const model::ModelConfig& config);

}  // namespace ingot::engine
