#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/load_plan.h"
#include "model/model_config.h"
#include "tensor/checkpoint.h"

namespace ingot::quantize {

// Programs that load the checkpoints that Ingot and Quark write, as they were when their rules were
// read; docs/loaders.md says when that was and what is checked.
enum class Loader : uint8_t {
  kSglang,
  kSglangBefore30265,  // before its pull request 30265, which made it know the MTP layer of GLM-5.2
  kVllm,
};
std::string_view name(Loader loader);     // "sglang", "sglang-0.5.13", "vllm"
std::string_view version(Loader loader);  // "sglang 0.5.23": where the rules were read
std::optional<Loader> find_loader(std::string_view name);

// What a loader would make of a checkpoint. A loader builds each module in the format that the
// quantization_config of config.json gives its name, by its own rules of matching, and then fills
// it from the file: a finding for every tensor that it would build in another format than the file
// has, for every exclude entry that it would not match, and for whatever else it would refuse, each
// with the fix. Findings of one cause are one finding that counts its tensors.
struct LoaderReport {
  Loader loader = Loader::kSglang;
  std::vector<model::Finding> findings;
  // All tensors of the file, scales aside, that a finding is about, by its place in `findings`;
  // nothing for one that is about the config.
  std::map<size_t, std::vector<std::string>> tensors_of_findings;
  // Every tensor of the checkpoint was compared. A form of quantization_config that is not known
  // here leaves it false, and a finding says what was not checked.
  bool is_complete = false;
  int64_t num_modules = 0;  // that the loader would build, fused ones counted once
  int64_t num_tensors = 0;  // of the file that fill them, scales not counted
  // What `exclude` lacks: with these entries added the modules that are stored unquantized and
  // would be built quantized, be it on one platform alone, are built right.
  std::vector<std::string> exclude_to_add;
  // Platforms that hold some module otherwise than the file has it, while another does not; a
  // warning says which module.
  bool differs_on_cuda = false;
  bool differs_on_rocm = false;

  // Whether the loader would load every tensor in the format that the file has, on one platform at
  // least.
  bool loads_right() const;
  // "", or where alone: " on CUDA but not on ROCm". REQUIRES: loads_right().
  std::string_view where() const;
};

// `config_json` is the document that `config` was read from.
LoaderReport check_for_loader(Loader loader, const base::json::value& config_json,
                              const model::ModelConfig& config, const model::LoadPlan& plan,
                              const tensor::Checkpoint& checkpoint);

}  // namespace ingot::quantize
