#pragma once

#include "model/family.h"

namespace ingot::model {

// DeepSeek-V3.2: V3 with sparse attention, whose indexer rotates halves where the attention rotates
// neighbouring pairs.
inline constexpr FamilyTraits kDeepseekV32Traits{
    .family = Family::kDeepseekV32,
    .model_type = "deepseek_v32",
    .has_indexer = true,
    .indexer_rope_style = kernels::RopeStyle::kHalfSplit,
    .mtp_repeats_embeddings = true};

}  // namespace ingot::model
