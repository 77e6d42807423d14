#include "base/output_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"

namespace ingot::base {
namespace {

constexpr std::string_view kTemporarySuffix = ".partial-";  // then the process

// A renamed file survives a power cut once its directory is written too. The file stands complete
// by now, so that a file system that cannot do this is no reason to fail.
void make_names_durable(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  // Now, and not when the bytes are written and the rename fails.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return error("{}: cannot create: a directory is there", path.string());
  }
  // A rename would replace the device itself: /dev/null, for everybody.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    return error("{}: cannot create: what is there is no regular file", path.string());
  }
  std::filesystem::path temporary = path;
  temporary += fmt::format("{}{}", kTemporarySuffix, ::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return error("{}: cannot create: {}", path.string(), std::strerror(errno));
  return OutputFile(path, std::move(temporary), descriptor);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      failed_(other.failed_.load()) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  failed_ = other.failed_.exchange(failed_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  CHECK(descriptor_ >= 0, "write after finish");
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      failed_ = true;
      return error("{}: write failed: {}", path_.string(), std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status OutputFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  CHECK(descriptor_ >= 0, "write after finish");
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      failed_ = true;
      return error("{}: write failed: {}", path_.string(), std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

Status OutputFile::reserve(uint64_t size_bytes) {
  CHECK(descriptor_ >= 0, "reserve after finish");
  if (size_bytes == 0) return {};
  int status = 0;
  // Not posix_fallocate, which writes to every block where the file system cannot do it.
  do {
    status = ::fallocate(descriptor_, 0, 0, static_cast<off_t>(size_bytes));
  } while (status != 0 && errno == EINTR);
  if (status != 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
    status = ::ftruncate(descriptor_, static_cast<off_t>(size_bytes));
  }
  if (status == 0) return {};
  failed_ = true;
  return error("{}: no space for {} bytes: {}", path_.string(), size_bytes, std::strerror(errno));
}

bool OutputFile::is_temporary_of(std::string_view file_name, std::string_view name) {
  if (!file_name.starts_with(name)) return false;
  file_name.remove_prefix(name.size());
  if (!file_name.starts_with(kTemporarySuffix)) return false;
  file_name.remove_prefix(kTemporarySuffix.size());
  return !file_name.empty() &&
         std::ranges::all_of(file_name, [](char c) { return c >= '0' && c <= '9'; });
}

Status OutputFile::finish() {
  CHECK(descriptor_ >= 0 && !failed_, "finish after a failed write");
  if (::fsync(descriptor_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    failed_ = true;
    return error("{}: cannot be completed: {}", path_.string(), std::strerror(errno));
  }
  ::close(std::exchange(descriptor_, -1));
  make_names_durable(path_.has_parent_path() ? path_.parent_path() : ".");
  return {};
}

Result<bool> create_directories(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::path full = fs::absolute(path, code).lexically_normal();
  std::vector<fs::path> missing;
  for (fs::path at = full; !code && !fs::exists(at, code); at = at.parent_path()) {
    missing.push_back(at);
  }
  if (!code) fs::create_directories(full, code);
  if (code) return error("{}: cannot create: {}", path.string(), code.message());
  for (const fs::path& directory : missing) make_names_durable(directory.parent_path());
  return !missing.empty();
}

Status write_text_file(const std::filesystem::path& path, std::string_view text) {
  OutputFile file = TRY(OutputFile::create(path));
  TRY(file.write(text));
  return file.finish();
}

}  // namespace ingot::base
