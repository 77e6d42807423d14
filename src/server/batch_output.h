#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/json.h"
#include "base/result.h"
#include "server/batch_input.h"

namespace ingot::server {

// What a batch job writes, at any moment as far as it is: whole lines, in the order of the input.
//
//   OUT.partial    the lines so far
//   OUT.job.json   which job it is: provenance, and the settings that decide the answers
//   OUT            the same as OUT.partial once the last line is there, and not before
//
// A job that was stopped, or killed, goes on after its last whole line when it is opened again with
// the same input and settings. One process at a time works on it. One thread uses it.
class BatchOutput {
 public:
  // Errors: OUT exists; OUT.partial or OUT.job.json is not a batch job's; another process is at
  // work; the directory cannot be written.
  static base::Result<BatchOutput> open(const std::filesystem::path& path);

  // Begins the job, or goes on with what an earlier run left of it. `job` is what OUT.job.json is
  // to say: a result document of the name "batch_job" with an object "settings", which has to be
  // the same when a job goes on, and whatever else, which stays as it was at the beginning.
  // Errors, after which everything is as it was: the begun job has other settings or answers other
  // lines; files that cannot be read or written.
  base::Status begin(const base::json::object& job, const BatchInput& input);

  BatchOutput(BatchOutput&& other) noexcept;
  BatchOutput& operator=(BatchOutput&&) = delete;
  ~BatchOutput();

  // The job's document, as it was at its beginning.
  const base::json::object& job() const { return job_; }
  // Lines that an earlier run wrote, and how many of them are no answers.
  int64_t num_found() const { return num_found_; }
  int64_t num_found_failed() const { return num_found_failed_; }
  // The custom_ids of these lines.
  const std::unordered_set<std::string>& custom_ids_found() const { return custom_ids_found_; }

  // `line` ends with a line feed. Errors: a full disk and the like, after which the file ends with
  // the last line that fitted.
  base::Status append(std::string_view line);
  // Makes what was appended durable, so that it survives a loss of power.
  base::Status flush();
  // Makes it durable, and gives it its own name. Errors: also that something of this name came to
  // be meanwhile; then all lines are in OUT.partial.
  base::Status finish();

  const std::filesystem::path& partial_path() const { return partial_; }

 private:
  BatchOutput(std::filesystem::path path, std::filesystem::path partial, int descriptor)
      : path_(std::move(path)), partial_(std::move(partial)), descriptor_(descriptor) {}
  base::Status check_names() const;
  base::Status read_found(const BatchInput& input);
  std::filesystem::path job_path() const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  int descriptor_ = -1;
  base::json::object job_;
  int64_t num_found_ = 0;
  int64_t num_found_failed_ = 0;
  std::unordered_set<std::string> custom_ids_found_;
  uint64_t size_bytes_ = 0;  // of whole lines
};

}  // namespace ingot::server
