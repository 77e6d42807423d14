#pragma once

#include <string_view>

namespace ingot::model {

// The file in which `ingot quantize` says how it made a model. It is there before the weights are,
// and config.json comes last: a directory with the one and not the other is an unfinished model.
inline constexpr std::string_view kManifestName = "ingot_quantization.json";

}  // namespace ingot::model
