// SPDX-License-Identifier: Apache-2.0
#include "core/node/shared_area.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "core/node/shared_word.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::node {
namespace {

TEST(SharedArea, IsSeenByAnotherProcess) {
  auto area = SharedArea::create(100'000);
  ASSERT_TRUE(area.ok()) << area.status().to_string();
  ASSERT_EQ(area->bytes().size(), 102'400U) << "whole pages";
  EXPECT_TRUE(std::ranges::all_of(area->bytes(), [](std::byte b) { return b == std::byte{0}; }));
  const AreaHandle handle = area->handle();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto same = SharedArea::open(handle);
    if (!same.ok()) ::_exit(1);
    same->bytes()[99'999] = std::byte{7};
    auto& word = *reinterpret_cast<SharedWord*>(same->bytes().data());
    word.store(1);
    wake_all(word);
    ::_exit(0);
  }
  auto& word = *reinterpret_cast<SharedWord*>(area->bytes().data());
  while (word.load() == 0) wait_for_change(word, 0, 1'000'000'000);
  EXPECT_EQ(area->bytes()[99'999], std::byte{7});
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// A page that is not there would be a signal where memory has run out.
TEST(SharedArea, HasAllItsPagesFromTheBeginning) {
  const auto area = SharedArea::create(1'000'000);
  ASSERT_TRUE(area.ok()) << area.status().to_string();
  struct stat found{};
  ASSERT_EQ(::fstat(area->handle().descriptor, &found), 0);
  EXPECT_GE(found.st_blocks * 512, 1'000'000);
  EXPECT_EQ(std::ranges::count(area->bytes(), std::byte{0}),
            static_cast<ptrdiff_t>(area->bytes().size()));
}

TEST(SharedArea, CannotBeMadeShorter) {
  const auto area = SharedArea::create(8192);
  ASSERT_TRUE(area.ok()) << area.status().to_string();
  EXPECT_EQ(::ftruncate(area->handle().descriptor, 0), -1);
  EXPECT_EQ(::ftruncate(area->handle().descriptor, 16384), -1);
}

TEST(SharedArea, OpensNothingElse) {
  const int open_size = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(open_size, 0);
  ASSERT_EQ(::ftruncate(open_size, 8192), 0);
  const shardwright::test::TemporaryDirectory directory;
  const int plain = ::open((directory / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::ftruncate(plain, 8192), 0);
  EXPECT_EQ(SharedArea::open({::getpid(), open_size, 8192}).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(SharedArea::open({::getpid(), plain, 8192}).status().code(), StatusCode::kDataLoss);
  ::close(open_size);
  ::close(plain);
  EXPECT_EQ(SharedArea::open({::getpid(), open_size, 8192}).status().code(), StatusCode::kNotFound);
  const auto area = SharedArea::create(8192);
  ASSERT_TRUE(area.ok());
  AreaHandle longer = area->handle();
  longer.size_bytes *= 2;
  EXPECT_EQ(SharedArea::open(longer).status().code(), StatusCode::kDataLoss);
}

TEST(SharedArea, IsRefusedWhereFilesMayNotBeSoLarge) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(SharedArea::create(8192).status().code(), StatusCode::kResourceExhausted);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

}  // namespace
}  // namespace shardwright::node
