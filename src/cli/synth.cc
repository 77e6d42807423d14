#include <fmt/format.h>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/provenance.h"
#include "base/thread_team.h"
#include "cli/options.h"
#include "model/named_configs.h"
#include "model/parameters.h"
#include "model/synthetic_checkpoint.h"
#include "quantize/quantizer.h"

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

base::Status write_weights(const std::filesystem::path& destination, const json::value& config,
                           const SynthOptions& options, base::ThreadTeam& team,
                           const base::Clock& clock) {
  const auto dtype = options.dtype == "f32" ? tensor::DType::kF32 : tensor::DType::kBF16;
  return model::write_synthetic_checkpoint(destination, config, dtype, options.seed, team, clock);
}

// A directory that goes away with everything in it.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {}
  ~Temporary() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_;
};

// What `ingot quantize` would make of the weights, by way of a directory beside the destination.
base::Status write_quantized(const json::value& config, const SynthOptions& options,
                             kernels::Target target, base::ThreadTeam& team,
                             const base::Clock& clock) {
  quantize::Recipe recipe = TRY(quantize::load_recipe(options.recipe));
  std::filesystem::path beside = options.destination;
  beside += ".unquantized";
  std::error_code code;
  for (const auto& path : {options.destination, beside}) {
    if (std::filesystem::exists(path, code)) {
      return base::error("{}: exists already; remove it or name another directory", path.string());
    }
  }
  const Temporary source(beside);
  TRY(write_weights(source.path(), config, options, team, clock));
  const std::string config_text = TRY(model::read_config_text(source.path()));
  const json::value written = TRY(base::parse_json(config_text, "config.json"));
  const model::ModelConfig parsed = TRY(model::parse_model_config(written, "config.json"));
  const tensor::Checkpoint checkpoint = TRY(tensor::Checkpoint::open(source.path()));
  const model::LoadPlan load_plan = TRY(model::plan_load(parsed, checkpoint, {}));
  const quantize::QuantizationPlan plan =
      TRY(quantize::plan_quantization(parsed, load_plan, checkpoint, std::move(recipe)));
  TRY(quantize::quantize(checkpoint, written, plan, source.path(), options.destination,
                         {.target = target}, team, clock));
  return {};
}

}  // namespace

base::Result<int> synth(const CommonOptions& common, const SynthOptions& options) {
  const json::value config = TRY(model::reshape_config(
      TRY(read_config(options.config)),
      {.layers = options.layers, .experts = options.experts, .keep_mtp = options.mtp == "keep"},
      options.config));
  const kernels::Target target = TRY(kernels::usable_target(common.targets));
  const base::SystemClock clock;
  const auto team = TRY(base::ThreadTeam::create(thread_count(common)));
  if (options.recipe.empty()) {
    TRY(write_weights(options.destination, config, options, *team, clock));
  } else {
    TRY(write_quantized(config, options, target, *team, clock));
  }
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
    document["recipe"] =
        options.recipe.empty() ? json::value(nullptr) : json::value(options.recipe);
    fmt::print("{}", base::pretty_json(document));
    return 0;
  }
  fmt::print("{}: {} parameters of random weights in {}{}\n", options.destination.string(),
             grouped(parameters), options.dtype,
             options.recipe.empty() ? "" : ", rounded by " + options.recipe);
  return 0;
}

}  // namespace ingot::cli
