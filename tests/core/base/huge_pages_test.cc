// SPDX-License-Identifier: Apache-2.0
//
// The hint changes no value, whatever the memory is.
#include "core/base/huge_pages.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(HugePages, VectorsHoldWhatIsPutIn) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{3} << 20}) {
    std::vector<uint64_t> values;
    reserve_large(&values, count);
    EXPECT_GE(values.capacity(), count);
    EXPECT_TRUE(values.empty());
    for (uint64_t i = 0; i < count; ++i) values.push_back(i);
    for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(values[i], i);
  }
}

TEST(HugePages, AdviceOnMemoryOfOddAddressesIsHarmless) {
  std::vector<char> values(size_t{20} << 20, 'x');
  advise_huge_pages(values.data() + 1, values.size() - 3);
  EXPECT_EQ(values.back(), 'x');
}

}  // namespace
}  // namespace shardwright
