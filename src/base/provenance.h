#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace ingot::base {

struct ProvenanceInputs {
  std::string model_hash;  // XXH3 over config and tensor headers; empty when no model was used
  int threads = 0;
  std::string target;  // instruction set of the kernels; empty when none ran
  std::optional<uint64_t> seed;
};

// Starts a result document: {"schema": "ingot.NAME/1", "provenance": {...}}. Every JSON that we
// write begins with it.
json::object result_document(std::string_view name, const ProvenanceInputs& inputs);

}  // namespace ingot::base
