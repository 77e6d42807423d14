#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"

namespace ingot::base {

// A regular file opened for reading. Movable, closes itself; reads are safe from any thread.
class InputFile {
 public:
  // Errors: the file is missing, is not a regular file, or may not be read.
  static Result<InputFile> open(const std::filesystem::path& path);

  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  ~InputFile();

  uint64_t size_bytes() const { return size_bytes_; }
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }

  // Fills `out` from `offset`. Errors: an I/O error, or the file ends first.
  Status read_at(uint64_t offset, std::span<std::byte> out) const;

  // Tells the kernel that these bytes will not be read again, so that a checkpoint does not fill
  // the page cache on its way into memory. Advice only.
  void drop_from_page_cache(uint64_t offset, uint64_t length) const;

 private:
  InputFile(std::filesystem::path path, int descriptor, uint64_t size_bytes)
      : path_(std::move(path)), descriptor_(descriptor), size_bytes_(size_bytes) {}

  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_bytes_ = 0;
};

// The first `length` bytes of a file, mapped read-only. Movable; the bytes live as long as this.
class MappedFile {
 public:
  // REQUIRES: length <= file.size_bytes(). A length of 0 gives an empty view.
  static Result<MappedFile> map(const InputFile& file, uint64_t length);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The whole of a small text file. Errors: unreadable, or larger than `size_bytes_max`.
Result<std::string> read_text_file(const std::filesystem::path& path, uint64_t size_bytes_max);

}  // namespace ingot::base
