// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/stream_copy.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_source.h"

namespace shardwright {
namespace {

// Around the length from which runs go round the caches, from and to any place in a line.
TEST(StreamCopy, CopiesExactlyTheBytesWhereverTheyLie) {
  test::RandomSource random;
  constexpr size_t kLeast = size_t{128} << 10;
  constexpr size_t kMargin = 80;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{64}, kLeast - 1, kLeast, kLeast + 1,
                            kLeast + 63, 3 * kLeast + 17}) {
    const std::vector<std::byte> from = random.bytes(size + kMargin);
    for (size_t shift = 0; shift < 66; shift += 13) {
      std::vector<std::byte> to(size + 2 * kMargin, std::byte{0x5A});
      const size_t source = (shift * 7) % kMargin;
      stream_copy({to.data() + shift, from.data() + source, 0, 0, size, 1});
      const auto first = to.begin() + static_cast<ptrdiff_t>(shift);
      const auto last = first + static_cast<ptrdiff_t>(size);
      EXPECT_TRUE(std::equal(first, last, from.begin() + static_cast<ptrdiff_t>(source))) << size;
      const auto untouched = [](std::byte each) { return each == std::byte{0x5A}; };
      EXPECT_TRUE(std::all_of(to.begin(), first, untouched)) << size;
      EXPECT_TRUE(std::all_of(last, to.end(), untouched)) << size;
    }
  }
}

// Runs that are long or short, many or few: what lies between them stays as it was.
TEST(StreamCopy, CopiesRunsAndNothingBetweenThem) {
  test::RandomSource random;
  for (const size_t bytes : {size_t{1}, size_t{255}, size_t{256}, size_t{1000}, size_t{2048}}) {
    for (const size_t count : {size_t{1}, size_t{100}, size_t{600}}) {
      const size_t to_stride = bytes + 13;
      const size_t from_stride = 2 * bytes + 3;
      const std::vector<std::byte> from = random.bytes(from_stride * count);
      std::vector<std::byte> to(to_stride * count + 7, std::byte{0x5A});
      std::vector<std::byte> expected = to;
      for (size_t i = 0; i < count; ++i) {
        std::copy_n(from.begin() + static_cast<ptrdiff_t>(i * from_stride), bytes,
                    expected.begin() + static_cast<ptrdiff_t>(7 + i * to_stride));
      }
      stream_copy({to.data() + 7, from.data(), static_cast<int64_t>(to_stride),
                   static_cast<int64_t>(from_stride), bytes, count});
      EXPECT_EQ(to, expected) << bytes << " x " << count;
    }
  }
}

}  // namespace
}  // namespace shardwright
