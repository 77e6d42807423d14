// Kills a run before every single call that makes a file or a name durable. The calls are counted
// by taking the place of the C library's in this program.

#include <atomic>
#include <csignal>
#include <mutex>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quantize/quantizer_fixture.h"

namespace ingot::quantize {
namespace {

std::atomic<int> num_calls = 0;
std::atomic<int> fatal_call = 0;  // 0: none
std::mutex synced_mutex;
std::set<ino_t> synced;  // what was made durable

void count_call() {
  if (++num_calls != fatal_call) return;
  ::kill(::getpid(), SIGKILL);
  while (true) ::pause();  // other threads run on until the signal is there
}

}  // namespace
}  // namespace ingot::quantize

extern "C" int fsync(int descriptor) {
  using namespace ingot::quantize;
  count_call();
  struct stat status {};
  if (::fstat(descriptor, &status) == 0) {
    const std::scoped_lock lock(synced_mutex);
    synced.insert(status.st_ino);
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  ingot::quantize::count_call();
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace ingot::quantize {
namespace {

namespace fs = std::filesystem;

// Runs in a process of its own that ends before call number `call`, if there are as many.
// Whether it was killed.
bool is_killed_before(int call, const OpenedSource& source, const fs::path& destination) {
  const pid_t child = ::fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    num_calls = 0;
    fatal_call = call;
    ::_exit(source.quantize_to(destination).has_value() ? 0 : 1);
  }
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  EXPECT_TRUE(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << call;
  return WIFSIGNALED(status);
}

class KilledQuantizer : public ::testing::Test {
 protected:
  KilledQuantizer() : model_(4) {
    model_.write("tasks/one.json", "{}");
    source_.emplace(model_.path(), mixed_recipe());
    CHECK(source_->quantize_to(scratch_ / "expected").has_value());
    expected_ = snapshot(scratch_ / "expected");
  }

  // What stands under its own name is whole, and config.json stands last.
  void expect_whole(int call) const {
    const auto files = snapshot(destination());
    for (const auto& [name, bytes] : files) {
      if (name.contains(".partial-")) continue;
      EXPECT_TRUE(expected_.contains(name) && expected_.at(name) == bytes) << name << ", " << call;
    }
    if (files.contains("config.json")) {
      EXPECT_TRUE(files == expected_) << call;
    }
  }

  fs::path destination() const { return scratch_ / "quantized"; }

  SourceModel model_;
  std::optional<OpenedSource> source_;
  base::ScratchDirectory scratch_;
  std::map<std::string, std::string> expected_;
};

TEST_F(KilledQuantizer, BeforeAnyCallTheSameCommandEndsWithTheSameBytes) {
  int call = 1;
  for (; is_killed_before(call, *source_, destination()); ++call) {
    expect_whole(call);
    const auto report = source_->quantize_to(destination());
    ASSERT_TRUE(report.has_value()) << call << ": " << report.error().message;
    EXPECT_TRUE(report->complete);
    EXPECT_TRUE(snapshot(destination()) == expected_) << call;
    fs::remove_all(destination());
  }
  // Four shards, the manifest five times, index, config and a side file; file, name and folder.
  EXPECT_GT(call, 3 * 12);
}

TEST_F(KilledQuantizer, AgainAndAgainItStillComesToItsEnd) {
  // The first lives until the manifest lists a shard, the others a little longer each.
  int kills = 0;
  for (; is_killed_before(9 + kills, *source_, destination()); ++kills) expect_whole(kills);
  EXPECT_GT(kills, 3);
  EXPECT_TRUE(snapshot(destination()) == expected_);
}

TEST_F(KilledQuantizer, NamesOfNewFoldersAreMadeDurable) {
  const auto inode = [](const fs::path& path) {
    struct stat status {};
    CHECK(::stat(path.c_str(), &status) == 0, path.string());
    return status.st_ino;
  };
  synced.clear();
  ASSERT_TRUE(source_->quantize_to(scratch_ / "a/b/quantized").has_value());
  for (const char* name : {".", "a", "a/b", "a/b/quantized", "a/b/quantized/tasks"}) {
    EXPECT_TRUE(synced.contains(inode(scratch_ / name))) << name;
  }
}

}  // namespace
}  // namespace ingot::quantize
