#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace ingot::tensor {

// What model.safetensors.index.json says: which shard holds which tensor.
struct CheckpointIndex {
  std::vector<std::string> shards;                   // file names, ascending
  std::unordered_map<std::string, size_t> shard_of;  // tensor name to index into shards
};

// Errors: not an object with one `weight_map` of strings, a tensor listed twice, no tensor at all,
// a shard that is not a plain file name. Other keys are ignored, `metadata` among them.
base::Result<CheckpointIndex> parse_checkpoint_index(std::string_view text,
                                                     std::string_view source);

}  // namespace ingot::tensor
