#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "quantize/loader_modules.h"
#include "quantize/quark_scheme.h"

namespace ingot::quantize {

// Which part of the config decided what a loader builds a module as.
enum class Decider : uint8_t {
  kNothing,   // there is no quantization_config, or the module is never quantized
  kExcluded,  // an entry of the list of modules that stay unquantized
  kConfig,    // what the config says of all modules or of this one
};

struct Decision {
  Scheme scheme;
  Decider decider = Decider::kNothing;
  std::string rule;  // in words, with the entry: "the exclude entry \"lm_head\""
};

using Decide = std::function<Decision(const LoaderModule&)>;

}  // namespace ingot::quantize
