#include "base/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

namespace ingot::base {

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK means nothing to a regular file and keeps a named pipe from holding us here.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return error("{}: cannot open: {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return error("{}: not a regular file", path.string());
  }
  return InputFile(path, descriptor, static_cast<uint64_t>(status.st_size));
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status InputFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return error("{}: read failed at byte {}: {}", path_.string(), offset, std::strerror(errno));
    }
    if (count == 0) {
      return error(
          "{}: ends at byte {}, {} bytes early; the file changed or is truncated, copy it again",
          path_.string(), offset, out.size());
    }
    out = out.subspan(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return {};
}

void InputFile::drop_from_page_cache(uint64_t offset, uint64_t length) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(length),
                  POSIX_FADV_DONTNEED);
}

Result<MappedFile> MappedFile::map(const InputFile& file, uint64_t length) {
  CHECK(length <= file.size_bytes());
  if (length == 0) return MappedFile(nullptr, 0);
  void* address = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) {
    return error("{}: cannot map {} bytes: {}", file.path().string(), length, std::strerror(errno));
  }
  return MappedFile(static_cast<const std::byte*>(address), length);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t size_bytes_max) {
  const InputFile file = TRY(InputFile::open(path));
  if (file.size_bytes() > size_bytes_max) {
    return error("{}: {} bytes, more than the {} that such a file may have", path.string(),
                 file.size_bytes(), size_bytes_max);
  }
  std::string text(file.size_bytes(), '\0');
  TRY(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace ingot::base
