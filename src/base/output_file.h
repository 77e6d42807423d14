#pragma once

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
  Status finish();

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path temporary, int descriptor)
      : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  bool failed_ = false;
};

// A whole small file at once, by the same rule.
Status write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace ingot::base
