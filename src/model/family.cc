#include "model/family.h"

#include <array>

#include "base/check.h"
#include "model/deepseek_v3.h"
#include "model/deepseek_v32.h"
#include "model/glm4_moe_lite.h"
#include "model/glm_moe_dsa.h"

namespace ingot::model {
namespace {

constexpr std::array kFamilies = {&kGlmMoeDsaTraits, &kGlm4MoeLiteTraits, &kDeepseekV3Traits,
                                  &kDeepseekV32Traits};

}  // namespace

const FamilyTraits& traits(Family family) {
  for (const FamilyTraits* entry : kFamilies) {
    if (entry->family == family) return *entry;
  }
  CHECK(false, "family without traits");
  return *kFamilies[0];
}

const FamilyTraits* find_family(std::string_view model_type) {
  for (const FamilyTraits* entry : kFamilies) {
    if (entry->model_type == model_type) return entry;
  }
  return nullptr;
}

std::string supported_model_types() {
  std::string list;
  for (const FamilyTraits* entry : kFamilies) {
    if (!list.empty()) list += ", ";
    list += entry->model_type;
  }
  return list;
}

std::string_view name(Family family) { return traits(family).model_type; }

}  // namespace ingot::model
