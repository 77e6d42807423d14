#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/model_config.h"

namespace ingot::model {

// What sets a family apart, as data; everything else follows from config.json.
struct FamilyTraits {
  Family family;
  std::string_view model_type;
  bool has_indexer;
  // Rotation of the indexer when the config does not say.
  kernels::RopeStyle indexer_rope_style;
  // The published files repeat embedding and output head inside the MTP layer.
  bool mtp_repeats_embeddings;
};

const FamilyTraits& traits(Family family);

// Null for a model_type that is not supported.
const FamilyTraits* find_family(std::string_view model_type);

// "glm_moe_dsa, glm4_moe_lite, ...", for error lines.
std::string supported_model_types();

}  // namespace ingot::model
