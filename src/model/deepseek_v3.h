#pragma once

#include "model/family.h"

namespace ingot::model {

// DeepSeek-V3 and R1: dense attention, routing limited to groups of experts, YaRN.
inline constexpr FamilyTraits kDeepseekV3Traits{
    .family = Family::kDeepseekV3,
    .model_type = "deepseek_v3",
    .has_indexer = false,
    .indexer_rope_style = kernels::RopeStyle::kHalfSplit,
    .mtp_repeats_embeddings = true};

}  // namespace ingot::model
