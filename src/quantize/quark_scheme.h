#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "quantize/loader_check.h"
#include "quantize/loader_modules.h"

namespace ingot::quantize {

// The form in which a loader holds a module and expects it in the file.
enum class BuiltFormat : uint8_t {
  kUnquantized,  // bf16, or whatever the model runs in
  kMxfp4,        // `weight` U8 [O, K/2], `weight_scale` U8 [O, K/32]
  kFp8Block,     // F8_E4M3 with a scale for 128 x 128 values
  kFp8Channel,   // F8_E4M3 with `weight_scale` F32 [O]
  kOther,        // something that Ingot does not read
  kRefused,      // the loader stops with an error
};

// What a loader makes of one entry of the config, and in words: the name of the format, or why it
// stops.
struct Scheme {
  BuiltFormat format = BuiltFormat::kRefused;
  std::string words;
};

Scheme scheme(BuiltFormat format);  // in its usual words

// What a loader builds a module as that has this entry of global_quant_config or
// layer_quant_config.
Scheme quark_scheme(Loader loader, const base::json::value& entry, ModuleKind kind);

// The entry that makes all loaders build `format`, in words for a remedy.
std::string_view quark_entry_for(BuiltFormat format);

}  // namespace ingot::quantize
