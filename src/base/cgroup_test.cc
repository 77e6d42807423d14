#include "base/cgroup.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/scratch_directory.h"

namespace ingot::base {
namespace {

// Files that stand for those of a machine.
class CgroupTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  CgroupLimits limits() const { return cgroup_limits(root_.path()); }

 private:
  ScratchDirectory root_;
};

TEST_F(CgroupTest, NoFilesAreNoLimits) {
  EXPECT_FALSE(limits().processors.has_value());
  EXPECT_FALSE(limits().memory_left_bytes.has_value());
}

TEST_F(CgroupTest, UnifiedTakesTheTightestOfAllGroupsAround) {
  write("proc/self/cgroup", "0::/kube/pod/container");
  write("sys/fs/cgroup/kube/pod/container/cpu.max", "max 100000");
  write("sys/fs/cgroup/kube/pod/cpu.max", "350000 100000");
  write("sys/fs/cgroup/kube/cpu.max", "1600000 100000");
  write("sys/fs/cgroup/kube/pod/memory.max", "1000");
  write("sys/fs/cgroup/kube/pod/memory.current", "700");
  write("sys/fs/cgroup/kube/pod/memory.stat",
        "anon 400\nfile 250\ninactive_file 200\nactive_file 40\nslab_reclaimable 10");
  write("sys/fs/cgroup/kube/memory.max", "max");
  write("sys/fs/cgroup/kube/memory.current", "5000");
  EXPECT_DOUBLE_EQ(limits().processors.value(), 3.5);
  EXPECT_EQ(limits().memory_left_bytes.value(), 1000U - (700 - 250));
}

TEST_F(CgroupTest, UnifiedInsideAContainerIsTheMountPoint) {
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_DOUBLE_EQ(limits().processors.value(), 0.5);
}

TEST_F(CgroupTest, VersionOneHasAHierarchyForEachKind) {
  write("proc/self/cgroup",
        "12:memory:/docker/1\n7:cpuset:/docker/1\n4:cpu,cpuacct:/docker/1\n0::/docker/1");
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "200000");
  write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  write("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "4096");
  write("sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "3000");
  write("sys/fs/cgroup/memory/docker/1/memory.stat",
        "cache 900\ninactive_file 1\ntotal_inactive_file 500\ntotal_active_file 100");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000");
  EXPECT_DOUBLE_EQ(limits().processors.value(), 2);
  EXPECT_EQ(limits().memory_left_bytes.value(), 4096U - (3000 - 600));
}

TEST_F(CgroupTest, VersionOneInsideAContainerNamesTheHostsPath) {
  write("proc/self/cgroup", "4:cpuacct,cpu:/docker/no-such-path-here\n3:memory:/");
  write("sys/fs/cgroup/cpuacct,cpu/cpu.cfs_quota_us", "150000");
  write("sys/fs/cgroup/cpuacct,cpu/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(limits().processors.value(), 1.5);
}

TEST_F(CgroupTest, UsageAboveALoweredLimitLeavesNothing) {
  write("proc/self/cgroup", "0::/g");
  write("sys/fs/cgroup/g/memory.max", "1000");
  write("sys/fs/cgroup/g/memory.current", "1200");
  EXPECT_EQ(limits().memory_left_bytes.value(), 0U);
}

}  // namespace
}  // namespace ingot::base
