// SPDX-License-Identifier: Apache-2.0
#include "core/exec/runtime.h"

#include <gtest/gtest.h>

#include "core/base/limits.h"

namespace shardwright::exec {
namespace {

TEST(Runtime, HasDefaultsForEverything) {
  const auto runtime = Runtime::create({});
  ASSERT_TRUE(runtime.ok()) << runtime.status().to_string();
  EXPECT_EQ((*runtime)->pool().thread_count(), default_thread_count());
  EXPECT_LE((*runtime)->staging().budget_bytes(), kDefaultMemoryBudgetBytes);
  EXPECT_GE((*runtime)->staging().budget_bytes(), 2 * kWriteBlockBytes);
  EXPECT_GT((*runtime)->clock().unix_ns(), 0);
  EXPECT_EQ((*runtime)->log().level(), LogLevel::kOff);
  const auto first = (*runtime)->random_bytes();
  const auto second = (*runtime)->random_bytes();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(*first, *second);
}

TEST(Runtime, RefusesWhatCannotWork) {
  RuntimeOptions negative;
  negative.threads = -1;
  EXPECT_EQ(Runtime::create(negative).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Runtime::create(negative).status().detail("parameter"), "threads");
  RuntimeOptions small;
  small.memory_budget = 2 * kWriteBlockBytes - 1;
  EXPECT_EQ(Runtime::create(small).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Runtime::create(small).status().detail("parameter"), "memory_budget");
}

TEST(Runtime, OfACallSharesAllButWorkersAndTheStagingMemoryThatItNames) {
  RuntimeOptions options;
  options.threads = 1;
  const std::unique_ptr<Runtime> runtime = std::move(*Runtime::create(options));
  const auto call = runtime->for_call(3, 0);
  ASSERT_TRUE(call.ok()) << call.status().to_string();
  EXPECT_EQ((*call)->pool().thread_count(), 3);
  EXPECT_EQ(&(*call)->staging(), &runtime->staging());
  const auto named = runtime->for_call(0, 3 * kWriteBlockBytes);
  EXPECT_EQ((*named)->staging().budget_bytes(), 3 * kWriteBlockBytes);
  EXPECT_NE(&(*named)->staging(), &runtime->staging());
  const auto behind = runtime->for_call(0, 0, ThreadPriority::kBackground);
  EXPECT_EQ((*behind)->staging().budget_bytes(), runtime->staging().budget_bytes());
  EXPECT_NE(&(*behind)->staging(), &runtime->staging());
  EXPECT_EQ(&(*call)->staged_states(), &runtime->staged_states());
  EXPECT_EQ(&(*call)->plan_cache(), &runtime->plan_cache());
  EXPECT_EQ(&(*call)->formats(), &runtime->formats());
  EXPECT_EQ(&(*call)->devices(), &runtime->devices());
  EXPECT_EQ((*runtime->for_call(0, 0))->pool().thread_count(), 1);
  EXPECT_EQ(runtime->for_call(-1, 0).status().detail("parameter"), "threads");
  EXPECT_EQ(runtime->for_call(1, 1).status().detail("parameter"), "memory_budget");
}

}  // namespace
}  // namespace shardwright::exec
