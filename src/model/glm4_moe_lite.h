#pragma once

#include "model/family.h"

namespace ingot::model {

// GLM-4.7-Flash: dense attention, one leading dense layer (first_k_dense_replace counts, as in
// every family). Its MTP layer repeats embedding and head.
inline constexpr FamilyTraits kGlm4MoeLiteTraits{
    .family = Family::kGlm4MoeLite,
    .model_type = "glm4_moe_lite",
    .has_indexer = false,
    .indexer_rope_style = kernels::RopeStyle::kInterleaved,
    .mtp_repeats_embeddings = true};

}  // namespace ingot::model
