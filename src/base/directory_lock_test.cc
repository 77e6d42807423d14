#include "base/directory_lock.h"

#include <optional>

#include <gtest/gtest.h>

#include "base/scratch_directory.h"

namespace ingot::base {
namespace {

TEST(DirectoryLock, IsHeldByOne) {
  const ScratchDirectory directory;
  std::optional<DirectoryLock> first;
  {
    auto acquired = DirectoryLock::acquire(directory.path());
    ASSERT_TRUE(acquired.has_value()) << acquired.error().message;
    first = std::move(*acquired);
  }
  const auto second = DirectoryLock::acquire(directory.path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().message,
            directory.path().string() + ": another process writes here; wait until it has ended");
  first.reset();
  EXPECT_TRUE(DirectoryLock::acquire(directory.path()).has_value());
  EXPECT_TRUE(std::filesystem::is_empty(directory.path())) << "a lock leaves no file";
}

TEST(DirectoryLock, NamesWhatItCannotOpen) {
  const ScratchDirectory directory;
  const auto lock = DirectoryLock::acquire(directory / "absent");
  ASSERT_FALSE(lock.has_value());
  EXPECT_EQ(lock.error().message,
            (directory / "absent").string() + ": cannot open: No such file or directory");
}

}  // namespace
}  // namespace ingot::base
