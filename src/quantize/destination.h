#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/directory_lock.h"
#include "base/result.h"
#include "quantize/quantization_manifest.h"
#include "quantize/side_files.h"

namespace ingot::quantize {

// The directory that a run writes to, ours alone while this lives. A directory that open() made and
// in which nothing was written goes away with it.
class Destination {
 public:
  // Takes a directory that is not there yet, that is empty, or that holds a run of the same
  // identity, interrupted or complete. What was half written by a run that was killed is removed.
  // Errors: anything else there, with what it is or how it differs; a run in progress; a place in
  // the source; no right to write.
  static base::Result<Destination> open(const std::filesystem::path& path,
                                        const std::filesystem::path& source,
                                        const RunIdentity& identity, const QuantizationPlan& plan,
                                        const std::vector<SideFile>& side_files);

  // What open() would take, and nothing is made or removed; nothing where no directory is there
  // yet. Errors: those of open(), as far as they can be told beforehand.
  static base::Result<std::optional<Destination>> look(const std::filesystem::path& path,
                                                       const std::filesystem::path& source,
                                                       const RunIdentity& identity);

  Destination(Destination&& other) noexcept
      : path_(std::move(other.path_)),
        lock_(std::move(other.lock_)),
        is_new_(std::exchange(other.is_new_, false)),
        is_complete_(other.is_complete_),
        earlier_run_(std::move(other.earlier_run_)) {}
  ~Destination();

  const std::filesystem::path& path() const { return path_; }

  // Whether a run of the same identity began here.
  bool is_taken_up() const { return earlier_run_.has_value(); }

  // Whether a run came to its end here: config.json, its last file, is there.
  bool is_complete() const { return is_complete_; }

  // The source's files as an earlier run found them; empty where there was none.
  std::vector<SourceFile> earlier_source_files() const;

  // Bytes of what open() would remove.
  base::Result<uint64_t> left_over_bytes(const QuantizationPlan& plan,
                                         const std::vector<SideFile>& side_files) const;

  // Moves out the shards that an earlier run finished and that still stand as it left them.
  // Errors: a complete model that lacks one.
  base::Result<std::vector<FinishedShard>> take_finished_shards();

 private:
  Destination(std::filesystem::path path, base::DirectoryLock lock, bool is_new)
      : path_(std::move(path)), lock_(std::move(lock)), is_new_(is_new) {}

  base::Status recognise(const RunIdentity& identity);
  base::Status holds_a_model(std::string_view which) const;
  base::Status refuse_strange_files() const;

  std::filesystem::path path_;
  base::DirectoryLock lock_;
  bool is_new_ = false;
  bool is_complete_ = false;
  std::optional<QuantizationManifest> earlier_run_;
};

// Whether a path is that of a directory or of something inside it, links followed.
bool lies_in(const std::filesystem::path& inner, const std::filesystem::path& outer);

// The bytes that the file system has left which holds `directory`, or will hold it; with what is to
// be removed there. Errors: less than `bytes`.
base::Result<uint64_t> check_space(const std::filesystem::path& directory, uint64_t bytes,
                                   uint64_t removed_bytes = 0);

}  // namespace ingot::quantize
