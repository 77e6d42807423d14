// `ingot quantize` on file systems that are full: a tmpfs of a few megabytes, in a mount namespace
// of the test's own, so that nothing outlives it. Skipped where one may not mount.

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "endtoend/quantized_model.h"

namespace ingot::endtoend {
namespace {

namespace fs = std::filesystem;

constexpr int kAttemptsMax = 30;
constexpr double kSecondsMax = 30;

bool may_mount() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

class FullDisk : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    may_mount_ = may_mount();
    if (!may_mount_) return;
    scratch_ = new base::ScratchDirectory;
    const Outcome synth = run_ingot({"synth", path("model"), "--config", "tiny", "--seed", "4"});
    CHECK(synth.status == 0, synth.err);
    split_weights(path("model"));
    const Outcome outcome = run_ingot({"quantize", path("model"), path("expected")});
    CHECK(outcome.status == 0, outcome.err);
    expected_ = snapshot(path("expected"));
  }
  static void TearDownTestSuite() { delete scratch_; }

  void SetUp() override {
    if (!may_mount_) GTEST_SKIP() << "mounting a tmpfs takes root";
  }
  void TearDown() override {
    if (is_mounted_) CHECK(::umount2(path("disk").c_str(), MNT_DETACH) == 0);
  }

  void mount_disk(const char* options, unsigned long flags = 0) {
    fs::create_directories(path("disk"));
    CHECK(::mount("tmpfs", path("disk").c_str(), "tmpfs", flags, options) == 0, options);
    is_mounted_ = true;
  }

  static std::string path(const std::string& name) { return (*scratch_ / name).string(); }
  static std::vector<std::string> quantize() {
    return {"quantize", path("model"), path("disk/out"), "--threads", "1"};
  }

  // A refusal in one line, after which nothing stands there under a wrong name.
  static void expect_refused(const Outcome& outcome, const char* words) {
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(outcome.err.contains(words)) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    const auto files = snapshot(path("disk/out"));
    EXPECT_FALSE(files.contains("config.json")) << "it would say that the rest is complete";
    for (const auto& [name, bytes] : files) {
      EXPECT_TRUE(expected_.contains(name) && expected_.at(name) == bytes) << name;
    }
  }

  static base::ScratchDirectory* scratch_;
  static bool may_mount_;
  static std::map<std::string, std::string> expected_;
  bool is_mounted_ = false;
};

base::ScratchDirectory* FullDisk::scratch_ = nullptr;
bool FullDisk::may_mount_ = false;
std::map<std::string, std::string> FullDisk::expected_;

// Takes all that is left of a file system.
void fill(const fs::path& ballast) {
  const int file = ::open(ballast.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  CHECK(file >= 0, ballast.string());
  const std::vector<std::byte> block(4096);
  while (::write(file, block.data(), block.size()) > 0) continue;
  CHECK(errno == ENOSPC);
  CHECK(::close(file) == 0);
}

// Starts the program and holds it as soon as `appears` is there.
pid_t start_and_hold(const std::vector<std::string>& arguments, const std::string& out_file,
                     const fs::path& appears) {
  const pid_t child = ::fork();
  CHECK(child >= 0, "cannot fork");
  if (child == 0) {
    const int out = ::open(out_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    execute_ingot(arguments);
  }
  const base::SystemClock clock;
  const auto begin = clock.now();
  while (::access(appears.c_str(), F_OK) != 0) {
    CHECK(base::seconds(clock.now() - begin) < kSecondsMax, "the program never came so far");
  }
  CHECK(::kill(child, SIGSTOP) == 0);
  return child;
}

TEST_F(FullDisk, InTheMiddleIsOneLineAndTheRunGoesOn) {
  mount_disk("size=64m");
  const std::string err_file = path("err.txt");
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    // The manifest is written after free space was looked at, and before the first shard.
    const pid_t child = start_and_hold(quantize(), err_file, path("disk/out") + "/" + kManifest);
    fill(path("disk/ballast"));
    CHECK(::kill(child, SIGCONT) == 0);
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 0) {  // it had been held too late
      fs::remove_all(path("disk/out"));
      fs::remove(path("disk/ballast"));
      continue;
    }
    expect_refused({.status = WEXITSTATUS(status), .err = contents(err_file)}, "space");
    const Outcome still_full = run_ingot(quantize());
    expect_refused(still_full, "are free; free");
    fs::remove(path("disk/ballast"));
    const Outcome outcome = run_ingot(quantize());
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(snapshot(path("disk/out")) == expected_);
    return;
  }
  ADD_FAILURE() << "the disk never became full in time";
}

TEST_F(FullDisk, IsFoundBeforeTheFirstByte) {
  mount_disk("size=1m");
  expect_refused(run_ingot(quantize()), "are still to be written and");
  EXPECT_TRUE(snapshot(path("disk/out")).empty());
}

TEST_F(FullDisk, AReadOnlyDestinationIsOneLine) {
  mount_disk("size=64m", MS_RDONLY);
  expect_refused(run_ingot(quantize()), "cannot create");
}

}  // namespace
}  // namespace ingot::endtoend
