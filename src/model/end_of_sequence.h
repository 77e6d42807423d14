#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"
#include "model/config_reader.h"

namespace ingot::model {

// The "eos_token_id" of a config: nothing, one id, or an array of ids. Errors: an id that the model
// does not have.
base::Result<std::vector<int64_t>> read_end_of_sequence(ConfigReader& reader, int64_t vocab_size);

// The end-of-sequence ids of generation_config.json that `known` lacks, where a model directory has
// that file. Publishers keep the list in both files and do not always change both.
base::Result<std::vector<int64_t>> further_end_of_sequence(const std::filesystem::path& directory,
                                                           const std::vector<int64_t>& known,
                                                           int64_t vocab_size);

}  // namespace ingot::model
