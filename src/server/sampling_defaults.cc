#include "server/sampling_defaults.h"

#include <limits>

#include "base/mapped_file.h"
#include "engine/sampling_params.h"
#include "server/field_reader.h"

namespace ingot::server {
namespace {

constexpr uint64_t kFileBytesMax = 1 << 20;

}  // namespace

base::Result<SamplingDefaults> SamplingDefaults::load(const std::filesystem::path& directory) {
  SamplingDefaults defaults;
  const std::filesystem::path path = directory / "generation_config.json";
  if (!std::filesystem::exists(path)) return defaults;
  const base::json::value document =
      TRY(base::parse_json(TRY(base::read_text_file(path, kFileBytesMax)), path.string()));
  if (!document.is_object()) return base::error("{}: expected a JSON object", path.string());
  FieldReader reader(document.get_object());
  reader.number("temperature", defaults.temperature);
  reader.number("top_p", defaults.top_p);
  reader.integer("top_k", defaults.top_k, -1, std::numeric_limits<int32_t>::max());
  if (defaults.top_k == -1) defaults.top_k = 0;
  reader.number("min_p", defaults.min_p);
  reader.number("repetition_penalty", defaults.repetition_penalty);
  if (const ApiError* wrong = reader.error()) {
    return base::error("{}: {}", path.string(), wrong->message);
  }
  const base::Status status = engine::check({.temperature = defaults.temperature,
                                             .top_k = defaults.top_k,
                                             .top_p = defaults.top_p,
                                             .min_p = defaults.min_p,
                                             .repetition_penalty = defaults.repetition_penalty},
                                            /*vocab_size=*/1);
  if (!status) return base::error("{}: {}", path.string(), status.error().message);
  return defaults;
}

}  // namespace ingot::server
