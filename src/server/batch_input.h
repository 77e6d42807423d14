#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"

namespace ingot::server {

// The lines of a batch file; those with nothing but white space are passed over. Mapped, so that a
// file may be larger than memory; it must not change while this lives. Safe from any thread.
class BatchInput {
 public:
  // Errors: unreadable, or without a line.
  static base::Result<BatchInput> open(const std::filesystem::path& path);

  int64_t num_lines() const { return static_cast<int64_t>(lines_.size()); }
  // REQUIRES: 0 <= index < num_lines().
  std::string_view line(int64_t index) const;
  // Where in the file it stands, from 1 on.
  int64_t line_number(int64_t index) const { return lines_[static_cast<size_t>(index)].number; }
  const std::filesystem::path& path() const { return path_; }
  uint64_t size_bytes() const { return mapped_.bytes().size(); }
  // XXH3-64 of all bytes, in 16 hex digits.
  const std::string& hash() const { return hash_; }

 private:
  struct Line {
    uint64_t offset = 0;
    uint64_t size = 0;
    int64_t number = 0;
  };

  BatchInput(std::filesystem::path path, base::MappedFile mapped)
      : path_(std::move(path)), mapped_(std::move(mapped)) {}
  std::string_view text() const;

  std::filesystem::path path_;
  base::MappedFile mapped_;
  std::vector<Line> lines_;
  std::string hash_;
};

}  // namespace ingot::server
