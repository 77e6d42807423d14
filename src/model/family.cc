#include "model/family.h"

#include <array>

#include "base/check.h"

namespace ingot::model {
namespace {

using kernels::RopeStyle;

constexpr std::array kFamilies = {
    FamilyTraits{.family = Family::kGlmMoeDsa,
                 .model_type = "glm_moe_dsa",
                 .has_indexer = true,
                 .indexer_rope_style = RopeStyle::kInterleaved,
                 .mtp_repeats_embeddings = false},
    FamilyTraits{.family = Family::kGlm4MoeLite,
                 .model_type = "glm4_moe_lite",
                 .has_indexer = false,
                 .indexer_rope_style = RopeStyle::kInterleaved,
                 .mtp_repeats_embeddings = true},
    FamilyTraits{.family = Family::kDeepseekV3,
                 .model_type = "deepseek_v3",
                 .has_indexer = false,
                 .indexer_rope_style = RopeStyle::kHalfSplit,
                 .mtp_repeats_embeddings = true},
    FamilyTraits{.family = Family::kDeepseekV32,
                 .model_type = "deepseek_v32",
                 .has_indexer = true,
                 .indexer_rope_style = RopeStyle::kHalfSplit,
                 .mtp_repeats_embeddings = true},
};

}  // namespace

const FamilyTraits& traits(Family family) {
  for (const FamilyTraits& entry : kFamilies) {
    if (entry.family == family) return entry;
  }
  CHECK(false, "family without traits");
  return kFamilies[0];
}

const FamilyTraits* find_family(std::string_view model_type) {
  for (const FamilyTraits& entry : kFamilies) {
    if (entry.model_type == model_type) return &entry;
  }
  return nullptr;
}

std::string supported_model_types() {
  std::string list;
  for (const FamilyTraits& entry : kFamilies) {
    if (!list.empty()) list += ", ";
    list += entry.model_type;
  }
  return list;
}

std::string_view name(Family family) { return traits(family).model_type; }

}  // namespace ingot::model
