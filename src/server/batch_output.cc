#include "server/batch_output.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "base/output_file.h"

namespace ingot::server {
namespace {

namespace json = base::json;

constexpr uint64_t kJobBytesMax = 1 << 20;

std::filesystem::path with_suffix(std::filesystem::path path, std::string_view suffix) {
  path += suffix;
  return path;
}

// What both the line of a request and that of its answer are known by; null where it has none.
json::value custom_id_of(const json::value& line) {
  const json::object* object = line.if_object();
  const json::value* id = object == nullptr ? nullptr : object->if_contains("custom_id");
  return id != nullptr && id->is_string() ? *id : json::value(nullptr);
}

json::value custom_id_of(std::string_view line) {
  const auto parsed = base::parse_json(line, "line");
  return parsed ? custom_id_of(*parsed) : json::value(nullptr);
}

bool is_answer(const json::value& line) {
  const json::object* object = line.if_object();
  const json::value* response = object == nullptr ? nullptr : object->if_contains("response");
  if (response == nullptr || !response->is_object()) return false;
  const json::value* status = response->get_object().if_contains("status_code");
  return status != nullptr && *status == json::value(200);
}

// The first setting in which two jobs differ.
base::Status compare_settings(const json::object& begun, const json::object& asked,
                              const std::filesystem::path& partial) {
  const json::value* before = begun.if_contains("settings");
  if (before == nullptr || !before->is_object()) {
    return base::error("{} was begun by something else; remove it to begin anew", partial.string());
  }
  const json::object& settings = asked.at("settings").as_object();
  for (const auto& [name, value] : settings) {
    const json::value* old_value = before->get_object().if_contains(name);
    if (old_value != nullptr && *old_value == value) continue;
    return base::error(
        "{} was begun with {} = {}, and now it is {}; go on with what it was, or remove that file "
        "to begin anew",
        partial.string(), std::string_view(name),
        old_value == nullptr ? "nothing" : base::compact_json(*old_value),
        base::compact_json(value));
  }
  return {};
}

}  // namespace

base::Result<BatchOutput> BatchOutput::open(const std::filesystem::path& path,
                                            const json::object& job, const BatchInput& input) {
  std::error_code code;
  if (std::filesystem::exists(path, code)) {
    return base::error("{}: exists already; remove it, or give --out another name", path.string());
  }
  const std::filesystem::path partial = with_suffix(path, ".partial");
  const int descriptor = ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return base::error("{}: cannot be written: {}", partial.string(), std::strerror(errno));
  }
  BatchOutput output(path, partial, descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return base::error("{}: another process is writing it; wait for it or stop it",
                       partial.string());
  }
  TRY(output.begin_or_go_on(job, input));
  return output;
}

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::move(other.partial_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      job_(std::move(other.job_)),
      num_found_(other.num_found_),
      num_found_failed_(other.num_found_failed_),
      size_bytes_(other.size_bytes_) {}

BatchOutput::~BatchOutput() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

base::Status BatchOutput::begin_or_go_on(const json::object& job, const BatchInput& input) {
  const std::filesystem::path job_path = with_suffix(path_, ".job.json");
  TRY(read_found(input));
  if (num_found_ > 0) {
    const std::string text = TRY(base::read_text_file(job_path, kJobBytesMax));
    const json::value begun = TRY(base::parse_json(text, job_path.string()));
    if (!begun.is_object()) {
      return base::error("{}: is no job's document; remove {} to begin anew", job_path.string(),
                         partial_.string());
    }
    job_ = begun.get_object();
    return compare_settings(job_, job, partial_);
  }
  job_ = job;
  return base::write_text_file(job_path, base::pretty_json(job_));
}

// Keeps the whole lines at the beginning, and cuts off what a crash may have left after them.
base::Status BatchOutput::read_found(const BatchInput& input) {
  const base::InputFile file = TRY(base::InputFile::open(partial_));
  const base::MappedFile mapped = TRY(base::MappedFile::map(file, file.size_bytes()));
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()),
                              mapped.bytes().size());
  while (num_found_ < input.num_lines()) {
    const size_t end = text.find('\n', size_bytes_);
    if (end == std::string_view::npos) break;
    const auto line = base::parse_json(text.substr(size_bytes_, end - size_bytes_), "line");
    if (!line) break;
    const json::value got = custom_id_of(*line);
    const json::value want = custom_id_of(input.line(num_found_));
    if (got != want) {
      return base::error(
          "{}: line {} answers {}, and that of {} is {}; remove the file to begin anew",
          partial_.string(), num_found_ + 1, base::compact_json(got), input.path().string(),
          base::compact_json(want));
    }
    if (!is_answer(*line)) ++num_found_failed_;
    ++num_found_;
    size_bytes_ = end + 1;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes_)) != 0) {
    return base::error("{}: cannot be written: {}", partial_.string(), std::strerror(errno));
  }
  return {};
}

base::Status BatchOutput::append(std::string_view line) {
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = ::pwrite(descriptor_, line.data() + done, line.size() - done,
                                     static_cast<off_t>(size_bytes_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int reason = written < 0 ? errno : ENOSPC;
      // What did not fit whole is cut off; a job that goes on would do the same.
      [[maybe_unused]] const int cut = ::ftruncate(descriptor_, static_cast<off_t>(size_bytes_));
      return base::error("{}: cannot be written: {}; make room, and the same command goes on",
                         partial_.string(), std::strerror(reason));
    }
    done += static_cast<size_t>(written);
  }
  size_bytes_ += line.size();
  return {};
}

base::Status BatchOutput::flush() {
  if (::fdatasync(descriptor_) == 0) return {};
  return base::error("{}: cannot be written: {}", partial_.string(), std::strerror(errno));
}

base::Status BatchOutput::finish() {
  TRY(flush());
  std::error_code code;
  std::filesystem::rename(partial_, path_, code);
  if (code) return base::error("{}: cannot be renamed: {}", partial_.string(), code.message());
  return {};
}

}  // namespace ingot::server
