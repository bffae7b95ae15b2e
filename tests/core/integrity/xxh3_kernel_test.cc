// SPDX-License-Identifier: Apache-2.0
//
// All kernels that this processor runs give the digests of the baseline, one-shot and streaming, at
// every length where the algorithm changes its path.
#include "core/integrity/xxh3_kernel_internal.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/random_source.h"

namespace shardwright::integrity::internal {
namespace {

std::vector<const Xxh3Kernel*> kernels_of_this_processor() {
  std::vector<const Xxh3Kernel*> kernels = {&kXxh3Baseline};
#if defined(SHW_XXH3_WIDE)
  if (__builtin_cpu_supports("avx2")) kernels.push_back(&kXxh3Avx2);
  if (__builtin_cpu_supports("avx512f")) kernels.push_back(&kXxh3Avx512);
#endif
  return kernels;
}

std::string one_shot(const Xxh3Kernel& kernel, const std::vector<std::byte>& bytes) {
  std::vector<std::byte> digest(16);
  kernel.hash(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()));
  return to_hex(digest);
}

std::string streamed(const Xxh3Kernel& kernel, const std::vector<std::byte>& bytes, size_t step) {
  Xxh3State state;
  kernel.reset(&state);
  for (size_t begin = 0; begin < bytes.size(); begin += step) {
    kernel.update(&state, bytes.data() + begin, std::min(step, bytes.size() - begin));
  }
  std::vector<std::byte> digest(16);
  kernel.digest(&state, reinterpret_cast<unsigned char*>(digest.data()));
  return to_hex(digest);
}

TEST(Xxh3Kernel, AllKernelsAgreeAtEveryLength) {
  test::RandomSource random(11);
  const std::vector<std::byte> source = random.bytes(70000);
  for (const size_t size : {0,   1,   3,   4,   8,   9,    16,   17,   128,   129,
                            240, 241, 255, 256, 257, 1023, 1024, 1025, 65535, 70000}) {
    const std::vector<std::byte> bytes(source.begin(),
                                       source.begin() + static_cast<ptrdiff_t>(size));
    const std::string expected = one_shot(kXxh3Baseline, bytes);
    for (const Xxh3Kernel* kernel : kernels_of_this_processor()) {
      EXPECT_EQ(one_shot(*kernel, bytes), expected) << kernel->name << " " << size;
      EXPECT_EQ(streamed(*kernel, bytes, 1000), expected) << kernel->name << " " << size;
      EXPECT_EQ(streamed(*kernel, bytes, 64), expected) << kernel->name << " " << size;
    }
  }
}

TEST(Xxh3Kernel, TheWidestOneIsChosen) {
  EXPECT_EQ(&best_xxh3_kernel(), kernels_of_this_processor().back());
}

}  // namespace
}  // namespace shardwright::integrity::internal
