#pragma once

#include <cstdint>

#include "base/json.h"
#include "quantize/quantization_plan.h"

namespace ingot::quantize {

// The two files around the shards, with the members, in the order, that AMD Quark 0.13 writes when
// it quantizes file to file; `quark_json` makes text of them. docs/formats/quantized_checkpoint.md
// says what each member means.

// config.json of the destination: the source's without its quantization_config, at whatever depth,
// and with the plan's at the end. W4A4: without dynamic input quantization sglang does not take its
// MXFP4 path. FP8 per channel is described by layer_quant_config, under exact names.
// REQUIRES: `source_config` is an object.
base::json::value quark_config(const base::json::value& source_config,
                               const QuantizationPlan& plan);

// model.safetensors.index.json: where each tensor is. `total_size` is the sum of the files' sizes,
// headers included, as Quark counts it. Shards in their order, tensors as the source has them.
base::json::value quark_index(const QuantizationPlan& plan, uint64_t total_size_bytes);

}  // namespace ingot::quantize
