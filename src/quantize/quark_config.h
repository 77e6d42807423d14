#pragma once

#include <string>

#include "base/json.h"
#include "quantize/quantization_plan.h"

namespace ingot::quantize {

// config.json of the destination: the source's with its quantization_config replaced by the one
// that AMD Quark 0.13 writes for this plan (W4A4: without dynamic input quantization sglang does
// not take its MXFP4 path). Keys keep their order. FP8 per channel is described by
// layer_quant_config, by exact names.
base::json::value quark_config(const base::json::value& source_config,
                               const QuantizationPlan& plan);

// model.safetensors.index.json: where each tensor is. `total_size` is the sum of the files' sizes,
// as Quark counts it.
base::json::value quark_index(const QuantizationPlan& plan, uint64_t total_size_bytes);

}  // namespace ingot::quantize
