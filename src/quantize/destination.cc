#include "quantize/destination.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <unistd.h>

#include "base/log.h"
#include "base/output_file.h"
#include "base/progress.h"

namespace ingot::quantize {
namespace {

namespace fs = std::filesystem;

// Names of all files that a run writes, relative to its directory.
std::vector<fs::path> written_names(const QuantizationPlan& plan,
                                    const std::vector<SideFile>& side_files) {
  std::vector<fs::path> names = {fs::path(kManifestName), "model.safetensors.index.json",
                                 "config.json"};
  for (const PlannedShard& shard : plan.shards) names.emplace_back(shard.file_name);
  for (const SideFile& file : side_files) names.push_back(file.name);
  std::ranges::sort(names);
  return names;
}

bool is_left_over(const fs::path& relative, const std::vector<fs::path>& names) {
  const std::string file = relative.filename().string();
  const size_t dot = file.rfind(".partial-");
  if (dot == std::string::npos) return false;
  const std::string name = file.substr(0, dot);
  return std::ranges::binary_search(names, relative.parent_path() / name) &&
         base::OutputFile::is_temporary_of(file, name);
}

std::unexpected<base::Error> cannot_be_listed(const fs::path& directory,
                                              const std::error_code& code) {
  return base::error("{}: cannot be listed: {}", directory.string(), code.message());
}

base::Result<std::vector<fs::path>> list_left_overs(const fs::path& directory,
                                                    const std::vector<fs::path>& names) {
  std::vector<fs::path> left_over;
  std::error_code code;
  fs::recursive_directory_iterator entries(directory, code);
  for (; !code && entries != fs::recursive_directory_iterator(); entries.increment(code)) {
    std::error_code ignored;
    if (!entries->is_regular_file(ignored)) continue;
    const fs::path relative = entries->path().lexically_relative(directory);
    if (is_left_over(relative, names)) left_over.push_back(entries->path());
  }
  if (code) return cannot_be_listed(directory, code);
  return left_over;
}

base::Status remove_left_overs(const fs::path& directory, const std::vector<fs::path>& names) {
  const std::vector<fs::path> left_over = TRY(list_left_overs(directory, names));
  for (const fs::path& path : left_over) {
    std::error_code code;
    fs::remove(path, code);
    if (!code) continue;
    return base::error("{}: what a killed run left there cannot be removed: {}", path.string(),
                       code.message());
  }
  return {};
}

base::Status check_apart(const fs::path& path, const fs::path& source) {
  if (!lies_in(path, source)) return {};
  return base::error("{}: lies in the source; name a directory elsewhere", path.string());
}

// The directory itself, or that of those around it in which the first one would be made.
fs::path nearest_that_is_there(const fs::path& path) {
  std::error_code code;
  fs::path at = fs::absolute(path, code).lexically_normal();
  while (at != at.parent_path() && !fs::exists(at, code)) at = at.parent_path();
  return at;
}

}  // namespace

bool lies_in(const fs::path& inner, const fs::path& outer) {
  std::error_code code;
  const fs::path a = fs::weakly_canonical(inner, code);
  const fs::path b = fs::weakly_canonical(outer, code);
  return std::mismatch(b.begin(), b.end(), a.begin(), a.end()).first == b.end();
}

base::Result<Destination> Destination::open(const fs::path& path, const fs::path& source,
                                            const RunIdentity& identity,
                                            const QuantizationPlan& plan,
                                            const std::vector<SideFile>& side_files) {
  TRY(check_apart(path, source));
  const bool is_new = TRY(base::create_directories(path));
  Destination destination(path, TRY(base::DirectoryLock::acquire(path)), is_new);
  TRY(destination.recognise(identity));
  TRY(remove_left_overs(path, written_names(plan, side_files)));
  return destination;
}

base::Result<std::optional<Destination>> Destination::look(const fs::path& path,
                                                           const fs::path& source,
                                                           const RunIdentity& identity) {
  TRY(check_apart(path, source));
  const fs::path there = nearest_that_is_there(path);
  std::error_code code;
  if (!fs::is_directory(there, code)) {
    return base::error("{}: cannot create: {} is no directory", path.string(), there.string());
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    return base::error("{}: cannot write to {}: {}", path.string(), there.string(),
                       std::strerror(errno));
  }
  if (!fs::exists(path, code)) return std::nullopt;
  Destination destination(path, TRY(base::DirectoryLock::acquire(path)), false);
  TRY(destination.recognise(identity));
  return destination;
}

Destination::~Destination() {
  std::error_code ignored;  // most often that it is not empty
  if (is_new_) fs::remove(path_, ignored);
}

base::Status Destination::recognise(const RunIdentity& identity) {
  std::error_code code;
  is_complete_ = fs::exists(path_ / "config.json", code);
  if (!fs::exists(path_ / kManifestName, code)) {
    return is_complete_ ? holds_a_model("") : refuse_strange_files();
  }
  auto manifest = read_manifest(path_ / kManifestName);
  if (!manifest && is_complete_) return holds_a_model("");
  if (!manifest) {
    return base::error("{}; remove the directory to start anew", manifest.error().message);
  }
  const std::string differs = difference(manifest->identity, identity);
  if (!differs.empty() && is_complete_) return holds_a_model(", of other work: " + differs);
  if (!differs.empty()) {
    return base::error(
        "{}: holds an interrupted run of other work: {}; repeat its command or name another "
        "directory",
        path_.string(), differs);
  }
  earlier_run_ = std::move(*manifest);
  return {};
}

base::Status Destination::holds_a_model(std::string_view which) const {
  return base::error("{}: holds a model already{}; remove it or name another directory",
                     path_.string(), which);
}

base::Status Destination::refuse_strange_files() const {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(path_, code)) {
    // A run that was killed at its very first write.
    const std::string name = entry.path().filename().string();
    if (base::OutputFile::is_temporary_of(name, kManifestName)) continue;
    return base::error(
        "{}: holds {} and no interrupted run of ingot quantize; name an empty directory",
        path_.string(), name);
  }
  if (code) return cannot_be_listed(path_, code);
  return {};
}

base::Result<uint64_t> Destination::left_over_bytes(const QuantizationPlan& plan,
                                                    const std::vector<SideFile>& side_files) const {
  uint64_t bytes = 0;
  const std::vector<fs::path> left_over =
      TRY(list_left_overs(path_, written_names(plan, side_files)));
  for (const fs::path& path : left_over) {
    std::error_code code;
    const uint64_t size_bytes = fs::file_size(path, code);
    if (!code) bytes += size_bytes;
  }
  return bytes;
}

std::vector<SourceFile> Destination::earlier_source_files() const {
  return earlier_run_ ? earlier_run_->identity.source_files : std::vector<SourceFile>();
}

base::Result<std::vector<FinishedShard>> Destination::take_finished_shards() {
  std::vector<FinishedShard> shards;
  if (!earlier_run_) return shards;
  for (FinishedShard& shard : earlier_run_->shards) {
    std::error_code code;
    const uint64_t size_bytes = fs::file_size(path_ / shard.file_name, code);
    if (!code && size_bytes == shard.file_bytes) {
      shards.push_back(std::move(shard));
      continue;
    }
    const std::string file = (path_ / shard.file_name).string();
    if (is_complete_) {
      return base::error(
          "{}: is gone or has another size, and the model was complete; remove config.json beside "
          "it to have the file made again",
          file);
    }
    base::log_warning(
        fmt::format("{}: was finished and is gone or has another size; it is made again", file));
  }
  return shards;
}

base::Result<uint64_t> check_space(const fs::path& directory, uint64_t bytes,
                                   uint64_t removed_bytes) {
  std::error_code code;
  const fs::space_info space = fs::space(nearest_that_is_there(directory), code);
  if (code) return base::error("{}: free space is unknown: {}", directory.string(), code.message());
  const uint64_t free_bytes = space.available + removed_bytes;
  if (free_bytes >= bytes) return free_bytes;
  return base::error("{}: {} are still to be written and {} are free; free {} or write elsewhere",
                     directory.string(), base::format_bytes(bytes), base::format_bytes(free_bytes),
                     base::format_bytes(bytes - free_bytes));
}

}  // namespace ingot::quantize
