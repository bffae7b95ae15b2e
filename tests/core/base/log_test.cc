// SPDX-License-Identifier: Apache-2.0
//
// The sink that wants nothing.
#include "core/base/log.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(NullLogSink, WantsNothingAndIsOne) {
  EXPECT_EQ(null_log_sink().level(), LogLevel::kOff);
  null_log_sink().write(LogLevel::kError, "base", "dropped");
  EXPECT_EQ(&null_log_sink(), &null_log_sink());
}

}  // namespace
}  // namespace shardwright
