#pragma once

#include "model/family.h"

namespace ingot::model {

// GLM-5, 5.1, 5.2 and 5.3: sparse attention whose indexer rotates neighbouring pairs as the
// attention does. 5.2 and later share index selections between layers, as config.json says.
inline constexpr FamilyTraits kGlmMoeDsaTraits{
    .family = Family::kGlmMoeDsa,
    .model_type = "glm_moe_dsa",
    .has_indexer = true,
    .indexer_rope_style = kernels::RopeStyle::kInterleaved,
    .mtp_repeats_embeddings = false};

}  // namespace ingot::model
