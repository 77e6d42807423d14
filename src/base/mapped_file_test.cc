#include "base/mapped_file.h"

#include <array>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/output_file.h"
#include "base/scratch_directory.h"

namespace ingot::base {
namespace {

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(write_text_file(path_, "0123456789").has_value()); }

  ScratchDirectory directory_;
  std::filesystem::path path_ = directory_ / "digits";
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(MappedFileTest, ReadsAnyPiece) {
  const auto file = InputFile::open(path_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->size_bytes(), 10u);
  EXPECT_EQ(file->path(), path_);
  std::array<std::byte, 4> out{};
  ASSERT_TRUE(file->read_at(6, out).has_value());
  EXPECT_EQ(text_of(out), "6789");
  file->drop_from_page_cache(0, 10);
  ASSERT_TRUE(file->read_at(0, out).has_value());
  EXPECT_EQ(text_of(out), "0123");
  EXPECT_TRUE(file->read_at(10, {}).has_value());
}

TEST_F(MappedFileTest, ReportsAFileThatEndsFirst) {
  const auto file = InputFile::open(path_);
  ASSERT_TRUE(file.has_value());
  std::array<std::byte, 4> out{};
  const Status status = file->read_at(8, out);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(
      status.error().message.starts_with(path_.string() + ": ends at byte 10, 2 bytes early"))
      << status.error().message;
}

TEST_F(MappedFileTest, MapsABeginning) {
  const auto file = InputFile::open(path_);
  ASSERT_TRUE(file.has_value());
  for (const uint64_t length : {0u, 1u, 9u, 10u}) {
    auto mapped = MappedFile::map(*file, length);
    ASSERT_TRUE(mapped.has_value());
    EXPECT_EQ(text_of(mapped->bytes()), std::string("0123456789").substr(0, length));
    MappedFile moved = std::move(*mapped);
    EXPECT_EQ(moved.bytes().size(), length);
    EXPECT_TRUE(mapped->bytes().empty());
  }
}

TEST_F(MappedFileTest, AMappingOutlivesItsFile) {
  auto file = InputFile::open(path_);
  ASSERT_TRUE(file.has_value());
  const auto mapped = MappedFile::map(*file, 10);
  ASSERT_TRUE(mapped.has_value());
  { const InputFile closed = std::move(*file); }
  EXPECT_EQ(text_of(mapped->bytes()), "0123456789");
}

TEST_F(MappedFileTest, RefusesWhatIsNoRegularFile) {
  const auto missing = InputFile::open(directory_ / "missing");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message,
            (directory_ / "missing").string() + ": cannot open: No such file or directory");
  EXPECT_FALSE(InputFile::open(directory_.path()).has_value());
  const std::filesystem::path pipe = directory_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(InputFile::open(pipe).has_value()) << "and returns at once";
}

TEST_F(MappedFileTest, ReadsSmallTextsOnly) {
  EXPECT_EQ(read_text_file(path_, 10), "0123456789");
  const auto refused = read_text_file(path_, 9);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().message.starts_with(path_.string() + ": 10 bytes"))
      << refused.error().message;
  ASSERT_TRUE(write_text_file(path_, "").has_value());
  EXPECT_EQ(read_text_file(path_, 0), "");
}

}  // namespace
}  // namespace ingot::base
