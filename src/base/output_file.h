#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"

namespace ingot::base {

// A file that appears whole or not at all: bytes go to a temporary file beside `path`, which
// finish() makes durable and renames. Destroyed unfinished, it leaves nothing behind and whatever
// stood at `path` before is untouched.
class OutputFile {
 public:
  // Errors: the directory is missing or not writable.
  static Result<OutputFile> create(const std::filesystem::path& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // Errors: a full disk, or any other failure to write; the file cannot be finished after one.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text))); }
  // The same at a place of the file, from any number of threads at once. Where write() goes on does
  // not change.
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);

  // Makes the file `size_bytes` long and takes its space on disk now, so that a disk that is too
  // small is found before the work and not after it. A file system that cannot do so is left to
  // find out when it writes. Errors: a full disk.
  Status reserve(uint64_t size_bytes);

  // Makes the file durable, and then its name.
  Status finish();

  // Whether a file name is one that create() gave a temporary file for `name`, in this process or
  // one that was killed.
  static bool is_temporary_of(std::string_view file_name, std::string_view name);

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary, int descriptor)
      : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::atomic<bool> failed_ = false;
};

// Makes a directory, and those around it that are missing, and their names durable. Whether it was
// not there before. Errors: no right to; something else of that name.
Result<bool> create_directories(const std::filesystem::path& path);

// A whole small file at once, by the same rule.
Status write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace ingot::base
