// SPDX-License-Identifier: Apache-2.0
#include "core/node/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace shardwright::node {
namespace {

TEST(Neighbourhood, IsTheSameForAChild) {
  const Digest128 own = *neighbourhood(1);
  EXPECT_EQ(own, *neighbourhood(1));
  EXPECT_NE(own, *neighbourhood(2));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(*neighbourhood(1) == own ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ProcessWatch, SaysWhenAProcessHasEnded) {
  EXPECT_FALSE(ProcessWatch(::getpid()).has_ended());
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ProcessWatch watch(child);
  ProcessWatch moved(std::move(watch));
  EXPECT_FALSE(moved.has_ended());
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(moved.has_ended());
  EXPECT_TRUE(ProcessWatch(child).has_ended()) << "it had gone before";
}

}  // namespace
}  // namespace shardwright::node
