#include <fmt/format.h>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/provenance.h"
#include "base/thread_team.h"
#include "cli/options.h"
#include "model/named_configs.h"
#include "model/parameters.h"
#include "model/synthetic_checkpoint.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

// A named config, or a file.
base::Result<json::value> read_config(const std::string& name_or_file) {
  if (const char* text = model::named_config(name_or_file)) {
    return base::parse_json(text, name_or_file);
  }
  std::error_code code;
  if (!std::filesystem::exists(name_or_file, code)) {
    return base::error("--config {}: no such file, and not one of {}", name_or_file,
                       model::named_configs());
  }
  return base::parse_json(TRY(model::read_config_text(name_or_file)), name_or_file);
}

}  // namespace

base::Result<int> synth(const CommonOptions& common, const SynthOptions& options) {
  const json::value config = TRY(model::reshape_config(
      TRY(read_config(options.config)),
      {.layers = options.layers, .experts = options.experts, .keep_mtp = options.mtp == "keep"},
      options.config));
  const auto dtype = options.dtype == "f32" ? tensor::DType::kF32 : tensor::DType::kBF16;
  const base::SystemClock clock;
  const auto team = TRY(base::ThreadTeam::create(thread_count(common)));
  TRY(model::write_synthetic_checkpoint(options.destination, config, dtype, options.seed, *team,
                                        clock));
  const model::ModelConfig written = TRY(model::load_model_config(options.destination));
  int64_t parameters = 0;
  for (const model::Parameter& parameter : model::list_parameters(written)) {
    if (!parameter.optional) parameters += parameter.shape.num_elements().value();
  }
  if (common.json) {
    json::object document =
        base::result_document("synth", {.threads = thread_count(common), .seed = options.seed});
    document["destination"] = options.destination.string();
    document["parameters"] = parameters;
    document["dtype"] = options.dtype;
    fmt::print("{}", base::pretty_json(document));
    return 0;
  }
  fmt::print("{}: {} parameters of random weights in {}\n", options.destination.string(),
             grouped(parameters), options.dtype);
  return 0;
}

}  // namespace ingot::cli
