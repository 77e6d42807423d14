#include "server/batch_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "server/batch_line.h"

namespace ingot::server {
namespace {

namespace json = base::json;

constexpr uint64_t kJobBytesMax = 1 << 20;
constexpr std::string_view kSchema = "ingot.batch_job/1";

std::filesystem::path with_suffix(std::filesystem::path path, std::string_view suffix) {
  path += suffix;
  return path;
}

// The custom_id of an answer's line; absent: it answers a line that has none.
std::optional<std::string> custom_id_of(const json::value& line) {
  const json::object* object = line.if_object();
  const json::value* id = object == nullptr ? nullptr : object->if_contains("custom_id");
  if (id == nullptr || !id->is_string()) return std::nullopt;
  return std::string(id->get_string());
}

std::string shown(const std::optional<std::string>& custom_id) {
  return custom_id ? base::compact_json(json::value(*custom_id)) : "a line without custom_id";
}

bool is_answer(const json::value& line) {
  const json::object* object = line.if_object();
  const json::value* response = object == nullptr ? nullptr : object->if_contains("response");
  if (response == nullptr || !response->is_object()) return false;
  const json::value* status = response->get_object().if_contains("status_code");
  return status != nullptr && *status == json::value(200);
}

// Not over what came to stand there meanwhile. Some file systems cannot promise that; there it is
// looked at beforehand. False: errno says why.
bool rename_without_replacing(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::access(to.c_str(), F_OK) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::rename(from.c_str(), to.c_str()) == 0;
}

// The first setting in which two jobs differ.
base::Status compare_settings(const json::object& begun, const json::object& asked,
                              const std::filesystem::path& partial) {
  const json::value* before = begun.if_contains("settings");
  if (before == nullptr || !before->is_object()) {
    return base::error("{} was begun by something else; move it away", partial.string());
  }
  const json::object& settings = asked.at("settings").as_object();
  for (const auto& [name, value] : settings) {
    const json::value* old_value = before->get_object().if_contains(name);
    if (old_value != nullptr && *old_value == value) continue;
    return base::error(
        "{} was begun with {} = {}, and now it is {}; go on with what it was, or move that file "
        "away to begin anew",
        partial.string(), std::string_view(name),
        old_value == nullptr ? "nothing" : base::compact_json(*old_value),
        base::compact_json(value));
  }
  return {};
}

}  // namespace

base::Result<BatchOutput> BatchOutput::open(const std::filesystem::path& path) {
  const std::filesystem::path partial = with_suffix(path, ".partial");
  const auto check_name = [&]() -> base::Status {
    std::error_code code;
    if (!std::filesystem::exists(path, code)) return {};
    return base::error("{}: exists already; remove it, or give --out another name", path.string());
  };
  TRY(check_name());
  const int descriptor = ::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return base::error("{}: cannot be written: {}", partial.string(), std::strerror(errno));
  }
  BatchOutput output(path, partial, descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return base::error("{}: another process is writing it; wait for it or stop it",
                         partial.string());
    }
    return base::error("{}: cannot be locked: {}; give --out a name on another file system",
                       partial.string(), std::strerror(errno));
  }
  TRY(check_name());  // of a job that has ended just now
  TRY(output.check_names());
  return output;
}

BatchOutput::BatchOutput(BatchOutput&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::move(other.partial_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      job_(std::move(other.job_)),
      num_found_(other.num_found_),
      num_found_failed_(other.num_found_failed_),
      custom_ids_found_(std::move(other.custom_ids_found_)),
      size_bytes_(other.size_bytes_) {}

BatchOutput::~BatchOutput() {
  if (descriptor_ < 0) return;
  // A job that never began leaves nothing behind.
  struct stat status {};
  if (job_.empty() && ::fstat(descriptor_, &status) == 0 && status.st_size == 0) {
    ::unlink(partial_.c_str());
  }
  ::close(descriptor_);
}

std::filesystem::path BatchOutput::job_path() const { return with_suffix(path_, ".job.json"); }

// What lies there is overwritten only if a job of ours left it.
base::Status BatchOutput::check_names() const {
  struct stat status {};
  const bool is_begun = ::fstat(descriptor_, &status) == 0 && status.st_size > 0;
  std::error_code code;
  if (!is_begun && !std::filesystem::exists(job_path(), code)) return {};
  const auto text = base::read_text_file(job_path(), kJobBytesMax);
  const auto job = text ? base::parse_json(*text, job_path().string())
                        : base::Result<json::value>(std::unexpected(text.error()));
  const json::object* object = job ? job->if_object() : nullptr;
  const json::value* schema = object == nullptr ? nullptr : object->if_contains("schema");
  const json::value* settings = object == nullptr ? nullptr : object->if_contains("settings");
  if (schema != nullptr && schema->is_string() &&
      std::string_view(schema->get_string()) == kSchema && settings != nullptr &&
      settings->is_object()) {
    return {};
  }
  if (!is_begun) {
    return base::error("{}: is no job's document and would be overwritten; move it away",
                       job_path().string());
  }
  return base::error("{}: not begun by this command, as {} beside it does not say so; move it away",
                     partial_.string(), job_path().filename().string());
}

base::Status BatchOutput::begin(const json::object& job, const BatchInput& input) {
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && status.st_size == 0) {
    TRY(base::write_text_file(job_path(), base::pretty_json(job)));
    job_ = job;
    return {};
  }
  const std::string text = TRY(base::read_text_file(job_path(), kJobBytesMax));
  const json::value begun = TRY(base::parse_json(text, job_path().string()));
  TRY(compare_settings(begun.as_object(), job, partial_));
  TRY(read_found(input));
  job_ = begun.as_object();
  // What a crash left after the last whole line.
  if (::ftruncate(descriptor_, static_cast<off_t>(size_bytes_)) != 0) {
    return base::error("{}: cannot be written: {}", partial_.string(), std::strerror(errno));
  }
  return {};
}

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
    const std::optional<std::string> got = custom_id_of(*line);
    std::optional<std::string> want = batch_custom_id(input.line(num_found_));
    if (got != want) {
      return base::error("{}: line {} answers {}, and that of {} is {}; move the file away",
                         partial_.string(), num_found_ + 1, shown(got), input.path().string(),
                         shown(want));
    }
    if (want) custom_ids_found_.insert(*std::move(want));
    if (!is_answer(*line)) ++num_found_failed_;
    ++num_found_;
    size_bytes_ = end + 1;
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
  if (!rename_without_replacing(partial_, path_)) {
    return base::error("{}: cannot be renamed to {}: {}; all answers are in it", partial_.string(),
                       path_.filename().string(), std::strerror(errno));
  }
  const std::filesystem::path directory =
      path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool is_durable = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int reason = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (is_durable) return {};
  return base::error("{}: its name may be lost at a loss of power: {}", path_.string(),
                     std::strerror(reason));
}

}  // namespace ingot::server
