#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace ingot::server {

// How an answer is sampled where its request says nothing: OpenAI's values, unless the model's own
// generation_config.json has others. (vLLM and sglang read the same five fields of it.)
struct SamplingDefaults {
  double temperature = 1;
  double top_p = 1;
  int32_t top_k = 0;  // all
  double min_p = 0;
  double repetition_penalty = 1;

  // Of a model directory, which may lack the file. Errors name the file, and the field: one of the
  // wrong type or out of range.
  static base::Result<SamplingDefaults> load(const std::filesystem::path& directory);
};

}  // namespace ingot::server
