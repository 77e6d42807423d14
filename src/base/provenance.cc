#include "base/provenance.h"

#include "base/build_info.h"
#include "base/clock.h"
#include "base/machine.h"

namespace ingot::base {

json::object result_document(std::string_view name, const ProvenanceInputs& inputs) {
  const BuildInfo& build = build_info();
  json::object provenance;
  provenance["commit"] = build.commit;
  provenance["build"] = fmt::format("{} {} {}", build.version, build.build_type, build.compiler);
  provenance["processor"] = processor_name();
  provenance["threads"] = inputs.threads;
  const Arithmetic& arithmetic = inputs.arithmetic;
  if (!arithmetic.target.empty()) provenance["target"] = arithmetic.target;
  if (!arithmetic.activations.empty()) provenance["activations"] = arithmetic.activations;
  if (!arithmetic.kv_dtype.empty()) provenance["kv_dtype"] = arithmetic.kv_dtype;
  const std::vector<double>& simulated = inputs.simulated_acceptance;
  if (!simulated.empty()) {
    provenance["simulated_acceptance"] = json::array(simulated.begin(), simulated.end());
  }
  if (!inputs.model_hash.empty()) provenance["model_hash"] = inputs.model_hash;
  if (inputs.seed) provenance["seed"] = *inputs.seed;
  provenance["time"] = utc_timestamp();
  json::object document;
  document["schema"] = fmt::format("ingot.{}/1", name);
  document["provenance"] = std::move(provenance);
  return document;
}

}  // namespace ingot::base
