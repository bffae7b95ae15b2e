// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency/memory_limit.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace shardwright {
namespace {

// A system whose files are in a directory.
class MemoryLimit : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = directory_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint64_t left() const { return memory_left_bytes(directory_.path()); }

  test::TemporaryDirectory directory_;
};

TEST_F(MemoryLimit, IsNoneWhereTheSystemSaysNothing) {
  EXPECT_EQ(left(), kNoMemoryLimit);
  write("proc/self/cgroup", "0::/job\nnonsense\n7:memory\n");
  EXPECT_EQ(left(), kNoMemoryLimit);
  write("sys/fs/cgroup/job/memory.max", "max\n");
  write("sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(left(), kNoMemoryLimit);
  EXPECT_GT(memory_left_bytes(), 0U) << "of the real one";
}

TEST_F(MemoryLimit, IsTheLeastOfAllGroupsAboveTheProcess) {
  write("proc/self/cgroup", "0::/pod/job\n");
  write("sys/fs/cgroup/pod/job/memory.max", "10000\n");
  write("sys/fs/cgroup/pod/job/memory.current", "4000\n");
  EXPECT_EQ(left(), 6000U);
  write("sys/fs/cgroup/pod/memory.max", "12000\n");
  write("sys/fs/cgroup/pod/memory.current", "11000\n");
  EXPECT_EQ(left(), 1000U);
  write("sys/fs/cgroup/pod/memory.stat", "anon 1\ninactive_file 300\nactive_file 200\nfile 900\n");
  EXPECT_EQ(left(), 1500U);
  write("sys/fs/cgroup/memory.max", "100\n");
  write("sys/fs/cgroup/memory.current", "200\n");
  EXPECT_EQ(left(), 0U);
}

TEST_F(MemoryLimit, ReadsTheFirstVersion) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/\n9:name=systemd:/\n4:memory:/job\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "77\n");
  EXPECT_EQ(left(), kNoMemoryLimit);
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "3000\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 500\n");
  EXPECT_EQ(left(), 2500U);
}

// A container sees its group at the root of the mount.
TEST_F(MemoryLimit, IsFoundInAContainer) {
  write("proc/self/cgroup", "0::/../outside/job\n");
  write("sys/fs/cgroup/memory.max", "5000\n");
  write("sys/fs/cgroup/memory.current", "3000\n");
  EXPECT_EQ(left(), 2000U);
}

// A control group of either version, for one child; gone with this.
class SmallGroup {
 public:
  explicit SmallGroup(uint64_t limit_bytes) {
    const std::string name = fmt::format("shardwright-test-{}", ::getpid());
    for (const auto& [mount, limit] :
         {std::pair("/sys/fs/cgroup/memory/", "/memory.limit_in_bytes"),
          std::pair("/sys/fs/cgroup/", "/memory.max")}) {
      path_ = mount + name;
      std::error_code failed;
      if (!std::filesystem::create_directory(path_, failed)) continue;
      std::ofstream(path_ + limit) << limit_bytes;
      uint64_t set = 0;
      if (std::ifstream(path_ + limit) >> set && set == limit_bytes) return;
      std::filesystem::remove(path_, failed);
    }
    path_.clear();
  }
  ~SmallGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  SmallGroup(const SmallGroup&) = delete;
  SmallGroup& operator=(const SmallGroup&) = delete;
  bool is_there() const { return !path_.empty(); }
  bool join() const {
    return static_cast<bool>(std::ofstream(path_ + "/cgroup.procs") << ::getpid());
  }

 private:
  std::string path_;
};

TEST(MemoryLeft, IsLittleInASmallControlGroup) {
  constexpr uint64_t kLimit = uint64_t{160} << 20;
  const SmallGroup group(kLimit);
  if (!group.is_there()) GTEST_SKIP() << "no control group with a memory limit can be made here";
  const pid_t child = ::fork();
  if (child == 0) {
    if (!group.join()) ::_exit(3);
    const uint64_t left = memory_left_bytes();
    ::_exit(left <= kLimit && left > kLimit / 2 ? 0 : 1);
  }
  int ended = 0;
  ASSERT_EQ(::waitpid(child, &ended, 0), child);
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 3)
    GTEST_SKIP() << "no control group with a memory limit can be made here";
  EXPECT_TRUE(WIFEXITED(ended) && WEXITSTATUS(ended) == 0) << ended;
}

}  // namespace
}  // namespace shardwright
