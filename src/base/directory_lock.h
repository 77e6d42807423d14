#pragma once

#include <filesystem>
#include <utility>

#include "base/result.h"

namespace ingot::base {

// One process at a time works in a directory: held while this lives, and let go by the kernel
// however the process ends. Leaves no file behind.
class DirectoryLock {
 public:
  // Errors: the directory cannot be opened, or another process holds it. A file system that cannot
  // lock directories is warned of and not an error.
  static Result<DirectoryLock> acquire(const std::filesystem::path& directory);

  DirectoryLock(DirectoryLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

}  // namespace ingot::base
