#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace ingot::base {

// How numbers were multiplied and kept; empty where no model ran.
struct Arithmetic {
  std::string target;       // highest instruction set that kernels could use
  std::string activations;  // types in which linear layers multiplied, "bf16" or "bf16, int8"
  std::string kv_dtype;     // type of the key-value cache
};

struct ProvenanceInputs {
  std::string model_hash;  // XXH3 over config and tensor headers; empty when no model was used
  int threads = 0;
  Arithmetic arithmetic = {};
  // Not empty: how often drafts counted as right, by position, whatever the model said. Times and
  // rates are then as if it had, and the text is none.
  std::vector<double> simulated_acceptance = {};
  std::optional<uint64_t> seed;
};

// Starts a result document: {"schema": "ingot.NAME/1", "provenance": {...}}. Every JSON that we
// write begins with it.
json::object result_document(std::string_view name, const ProvenanceInputs& inputs);

}  // namespace ingot::base
