#include "base/output_file.h"

#include <csignal>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/mapped_file.h"
#include "base/scratch_directory.h"
#include "base/thread_team.h"

namespace ingot::base {
namespace {

// While it lives, a file of this process cannot grow beyond a size: the nearest thing to a full
// disk that needs no privileges.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t size_bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = size_bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

class OutputFileTest : public ::testing::Test {
 protected:
  std::string content() const { return read_text_file(path_, 1 << 20).value_or("unreadable"); }
  long num_files() const {
    return std::distance(std::filesystem::directory_iterator(directory_.path()), {});
  }

  ScratchDirectory directory_;
  std::filesystem::path path_ = directory_ / "result.json";
};

// `--logits /dev/null` by root would otherwise put a regular file in the device's place.
TEST_F(OutputFileTest, LeavesDevicesAlone) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  for (const auto& path : {path_, std::filesystem::path("/dev/null")}) {
    const auto file = OutputFile::create(path);
    ASSERT_FALSE(file.has_value());
    EXPECT_TRUE(file.error().message.contains("cannot create: what is there is no regular file"))
        << file.error().message;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_EQ(num_files(), 1);
}

TEST_F(OutputFileTest, AppearsWholeAtFinish) {
  auto file = OutputFile::create(path_);
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_TRUE(file->write("first, ").has_value());
  ASSERT_TRUE(file->write("").has_value());
  ASSERT_TRUE(file->write("second").has_value());
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(file->finish().has_value());
  EXPECT_EQ(content(), "first, second");
  EXPECT_EQ(num_files(), 1);
}

TEST_F(OutputFileTest, LeavesNothingWhenUnfinished) {
  {
    auto file = OutputFile::create(path_);
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE(file->write("half").has_value());
    EXPECT_EQ(num_files(), 1);
  }
  EXPECT_EQ(num_files(), 0);
}

TEST_F(OutputFileTest, ReplacesOnlyAtFinish) {
  ASSERT_TRUE(write_text_file(path_, "old").has_value());
  {
    auto file = OutputFile::create(path_);
    ASSERT_TRUE(file->write("abandoned").has_value());
    EXPECT_EQ(content(), "old");
  }
  EXPECT_EQ(content(), "old");
  ASSERT_TRUE(write_text_file(path_, "new").has_value());
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(num_files(), 1);
}

TEST_F(OutputFileTest, MovesWithItsFile) {
  auto created = OutputFile::create(path_);
  ASSERT_TRUE(created.has_value());
  OutputFile moved = std::move(*created);
  ASSERT_TRUE(moved.write("text").has_value());
  auto other = OutputFile::create(directory_ / "other");
  ASSERT_TRUE(other.has_value());
  *other = std::move(moved);
  ASSERT_TRUE(other->finish().has_value());
  EXPECT_EQ(content(), "text");
}

TEST_F(OutputFileTest, ReportsAFullDiskAndLeavesNothing) {
  const std::string megabyte(1 << 20, 'x');
  {
    const FileSizeLimit limit(100'000);
    auto file = OutputFile::create(path_);
    ASSERT_TRUE(file.has_value());
    const Status status = file->write(megabyte);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().message, path_.string() + ": write failed: File too large");
  }
  EXPECT_EQ(num_files(), 0);
  {
    const FileSizeLimit limit(100'000);
    EXPECT_FALSE(write_text_file(path_, megabyte).has_value());
  }
  EXPECT_EQ(num_files(), 0);
}

TEST_F(OutputFileTest, TakesPiecesAtTheirPlacesFromManyThreads) {
  constexpr size_t kPieces = 64;
  constexpr size_t kPieceBytes = 1000;
  auto file = OutputFile::create(path_);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(file->reserve(2 + kPieces * kPieceBytes).has_value());
  ASSERT_TRUE(file->write("> ").has_value());
  ThreadTeam team(4);
  team.run([&](int member) {
    for (size_t piece = static_cast<size_t>(member); piece < kPieces; piece += 4) {
      const std::string text(kPieceBytes, static_cast<char>('!' + piece));
      ASSERT_TRUE(file->write_at(2 + piece * kPieceBytes, std::as_bytes(std::span(text))));
    }
  });
  ASSERT_TRUE(file->finish().has_value());
  std::string expected = "> ";
  for (size_t piece = 0; piece < kPieces; ++piece) {
    expected += std::string(kPieceBytes, static_cast<char>('!' + piece));
  }
  EXPECT_EQ(content(), expected);
}

TEST_F(OutputFileTest, FindsAFullDiskWhenItReserves) {
  {
    const FileSizeLimit limit(100'000);
    auto file = OutputFile::create(path_);
    ASSERT_TRUE(file.has_value());
    EXPECT_TRUE(file->reserve(100'000).has_value());
    const Status status = file->reserve(1 << 20);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().message,
              path_.string() + ": no space for 1048576 bytes: File too large");
  }
  EXPECT_EQ(num_files(), 0);
}

TEST_F(OutputFileTest, ReportsAFullDiskAtAPlace) {
  const FileSizeLimit limit(100'000);
  auto file = OutputFile::create(path_);
  ASSERT_TRUE(file.has_value());
  const Status status = file->write_at(100'000, std::as_bytes(std::span("x")));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, path_.string() + ": write failed: File too large");
}

TEST(OutputFile, KnowsItsTemporaryFiles) {
  EXPECT_TRUE(OutputFile::is_temporary_of("a.json.partial-123", "a.json"));
  for (const char* other : {"a.json", "a.json.partial-", "a.json.partial-1x", "b.json.partial-1",
                            "a.json.partial-1.json", "a.jsonx.partial-1"}) {
    EXPECT_FALSE(OutputFile::is_temporary_of(other, "a.json")) << other;
  }
  const ScratchDirectory directory;
  const auto file = OutputFile::create(directory / "weights");
  ASSERT_TRUE(file.has_value());
  const auto entry = std::filesystem::directory_iterator(directory.path());
  EXPECT_TRUE(OutputFile::is_temporary_of(entry->path().filename().string(), "weights"));
}

TEST_F(OutputFileTest, NamesThePathItCannotCreate) {
  const auto missing = OutputFile::create(directory_ / "absent" / "file");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().message, (directory_ / "absent" / "file").string() +
                                         ": cannot create: No such file or directory");
  const auto directory = OutputFile::create(directory_.path());
  ASSERT_FALSE(directory.has_value()) << "found only after hours of writing";
  EXPECT_EQ(num_files(), 0);
}

TEST_F(OutputFileTest, ReportsARenameThatFails) {
  auto file = OutputFile::create(path_);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(std::filesystem::create_directory(path_));
  const Status status = file->finish();
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.starts_with(path_.string() + ": cannot be completed: "));
}

using OutputFileDeathTest = OutputFileTest;

TEST_F(OutputFileDeathTest, CannotGoOnAfterAnEnd) {
  auto file = OutputFile::create(path_);
  ASSERT_TRUE(file->finish().has_value());
  EXPECT_DEATH(static_cast<void>(file->write("more")), "write after finish");
  EXPECT_DEATH(static_cast<void>(file->finish()), "finish");
}

}  // namespace
}  // namespace ingot::base
