// Everything that happens before a byte of weights is read: a config, a safetensors header, the
// plan that follows from both. The input is the config in one line and the header's JSON after it;
// the file gets the header's length and as many bytes of data as its last number says.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "base/check.h"
#include "base/json.h"
#include "base/scratch_directory.h"
#include "model/inspection.h"
#include "model/load_plan.h"
#include "model/model_config.h"
#include "model/weights.h"
#include "tensor/checkpoint.h"

namespace {

using ingot::model::LoadPlan;
using ingot::model::ModelConfig;
using ingot::model::ModuleClass;
using ingot::model::MtpChoice;
using ingot::model::Severity;
using ingot::tensor::Checkpoint;

constexpr int64_t kExpertLayersMax = 512;
constexpr uint64_t kDataBytesMax = uint64_t{1} << 40;

void check_line(std::string_view line) {
  CHECK(std::ranges::none_of(line, [](char c) { return static_cast<uint8_t>(c) < 0x20; }), line);
}

uint64_t last_number(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t last = text.find_last_of(kDigits);
  if (last == std::string_view::npos) return 0;
  const size_t before = text.find_last_not_of(kDigits, last);
  const size_t first = before == std::string_view::npos ? 0 : before + 1;
  uint64_t number = 0;
  std::from_chars(text.data() + first, text.data() + last + 1, number);
  return number;
}

// False when the file system does not take a file of this size.
bool write_header(const std::filesystem::path& path, std::string_view header) {
  const uint64_t length = header.size();
  const uint64_t data_bytes = last_number(header);
  if (data_bytes > kDataBytesMax) return false;
  std::error_code code;
  std::filesystem::remove(path, code);  // writing over the old one waits for the disk
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file.write(header.data(), static_cast<std::streamsize>(length));
  file.close();
  std::filesystem::resize_file(path, sizeof length + length + data_bytes, code);
  return file.good() && !code;
}

// Every tensor is claimed once, and every parameter that must be there is.
void check_sound(const ModelConfig& config, const Checkpoint& checkpoint, const LoadPlan& plan) {
  std::unordered_set<const ingot::tensor::TensorInfo*> claimed;
  std::unordered_set<std::string_view> filled;
  for (const auto& row : plan.rows) {
    CHECK(filled.insert(row.parameter.name).second, row.parameter.name);
    CHECK(claimed.insert(row.stored.data).second, row.parameter.name);
    if (row.stored.scales != nullptr) {
      CHECK(claimed.insert(row.stored.scales).second, row.parameter.name);
      CHECK(row.parameter.is_linear(), row.parameter.name);
    } else {
      CHECK(row.stored.data->shape == row.parameter.shape, row.parameter.name);
    }
  }
  CHECK(claimed.size() == checkpoint.tensors().size());
  for (const auto& parameter : ingot::model::list_parameters(config)) {
    const bool may_lack =
        parameter.optional || (parameter.module_class == ModuleClass::kMtp && !plan.has_mtp);
    CHECK(may_lack || filled.contains(parameter.name), parameter.name);
  }
}

void check_plan(const ModelConfig& config, const Checkpoint& checkpoint) {
  const auto plan = ingot::model::plan_load(config, checkpoint, {});
  CHECK(plan.has_value());
  for (const auto& finding : plan->findings) {
    check_line(finding.line());
    CHECK(!finding.code.empty() && !finding.message.empty() && !finding.remedy.empty());
  }
  const auto inspection = ingot::model::inspect_plan(config, *plan);
  CHECK(inspection.bytes <= checkpoint.size_bytes());
  const auto mtp = plan->has_mtp ? MtpChoice::kLoad : MtpChoice::kLeaveOut;
  const auto weights = ingot::model::Weights::shapes_of(config, *plan, mtp, {});
  if (!weights) check_line(weights.error().message);
  const auto status = plan->check();
  CHECK(status.has_value() == (plan->count(Severity::kError) == 0));
  if (!status) {
    check_line(status.error().message);
    CHECK(!weights.has_value());
    return;
  }
  check_sound(config, checkpoint, *plan);
  CHECK(inspection.bytes == checkpoint.size_bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ingot::base::ScratchDirectory scratch;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line_end = std::min(input.find('\n'), input.size());
  const std::string_view header = input.substr(std::min(line_end + 1, input.size()));
  const auto document = ingot::base::parse_json(input.substr(0, line_end), "config.json");
  if (!document) return 0;
  const auto config = ingot::model::parse_model_config(*document, "config.json");
  if (!config) return 0;
  if (config->num_hidden_layers * config->n_routed_experts > kExpertLayersMax) return 0;
  if (!write_header(scratch / "model.safetensors", header)) return 0;
  const auto checkpoint = Checkpoint::open(scratch.path());
  if (!checkpoint) {
    check_line(checkpoint.error().message);
    return 0;
  }
  check_plan(*config, *checkpoint);
  return 0;
}
