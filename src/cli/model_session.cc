#include "cli/model_session.h"

#include <limits>

#include "base/json.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "engine/score.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

constexpr uint64_t kTokenFileBytesMax = 256 << 20;

base::Result<std::vector<int32_t>> read_ids(const json::array& array, const std::string& source) {
  std::vector<int32_t> ids;
  ids.reserve(array.size());
  for (const json::value& element : array) {
    const int64_t* id = element.if_int64();
    if (id == nullptr || *id < 0 || *id > std::numeric_limits<int32_t>::max()) {
      return base::error(
          "{}: element {} is no token id; expected a JSON array of ids, or of arrays "
          "of ids",
          source, ids.size());
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

base::Status take_findings(const std::filesystem::path& directory,
                           const std::vector<model::Finding>& findings) {
  for (const model::Finding& finding : findings) {
    if (finding.severity == model::Severity::kError) {
      return base::error("{}: {}", directory.string(), finding.line());
    }
    if (finding.severity == model::Severity::kWarning) base::log_warning(finding.line());
  }
  return {};
}

}  // namespace

base::Result<engine::ModelText> open_model_text(const std::filesystem::path& directory,
                                                const model::ModelConfig& config) {
  engine::ModelText text = TRY(engine::ModelText::load(directory));
  TRY(take_findings(directory, text.compare_with(config)));
  return text;
}

base::Result<text::Tokenizer> open_tokenizer(const std::filesystem::path& directory,
                                             const model::ModelConfig& config) {
  text::Tokenizer tokenizer = TRY(engine::load_tokenizer(directory));
  TRY(take_findings(directory, engine::compare_tokenizer(tokenizer, config)));
  return tokenizer;
}

base::Result<TokenIds> read_token_ids(const std::filesystem::path& path) {
  const std::string source = path.string();
  const json::value document =
      TRY(base::parse_json(TRY(base::read_text_file(path, kTokenFileBytesMax)), source));
  const json::array* array = document.if_array();
  if (array == nullptr) {
    return base::error("{}: expected a JSON array of token ids, or of arrays of ids", source);
  }
  TokenIds ids{.path = path, .sequences = {}};
  if (array->empty() || !array->front().is_array()) {
    ids.sequences.push_back(TRY(read_ids(*array, source)));
    return ids;
  }
  for (const json::value& element : *array) {
    if (!element.is_array()) {
      return base::error("{}: arrays of ids and single ids are mixed; use one form", source);
    }
    const std::string where = source + ": sequence " + std::to_string(ids.sequences.size());
    ids.sequences.push_back(TRY(read_ids(element.get_array(), where)));
  }
  return ids;
}

base::Result<std::unique_ptr<ModelSession>> open_session(const CommonOptions& common,
                                                         const ModelOptions& options,
                                                         scheduler::SpeculationMode speculation) {
  using enum scheduler::SpeculationMode;
  engine::RunnerOptions executor = TRY(executor_options(common, options));
  if (speculation != kOff) executor.mtp = model::MtpChoice::kLoad;
  if (speculation == kAuto) executor.mtp_need = engine::RunnerOptions::MtpNeed::kIfPresent;
  auto session = std::make_unique<ModelSession>();
  session->team = TRY(base::ThreadTeam::create(thread_count(common)));
  session->model =
      TRY(engine::LoadedModel::load(options.model, executor, *session->team, session->clock));
  for (const std::string& note : session->model->notes()) base::log_info(note);
  // Who forces the reference kernels knows that they are slow.
  if (!session->model->slow_kernels().empty() && executor.target > kernels::Target::kReference) {
    base::log_warning(session->model->slow_kernels());
  }
  return session;
}

base::Result<std::unique_ptr<ModelSession>> open_session(const CommonOptions& common,
                                                         const ModelOptions& options, TokenIds ids,
                                                         int32_t draft_tokens) {
  const model::ModelConfig config = TRY(model::load_model_config(options.model));
  if (const auto status = engine::check_sequences(ids.sequences, config, draft_tokens); !status) {
    return base::error("{}: {}", ids.path.string(), status.error().message);
  }
  auto session = TRY(open_session(
      common, options,
      draft_tokens > 0 ? scheduler::SpeculationMode::kFixed : scheduler::SpeculationMode::kOff));
  session->sequences = std::move(ids.sequences);
  return session;
}

}  // namespace ingot::cli
