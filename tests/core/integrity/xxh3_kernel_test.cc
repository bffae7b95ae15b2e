// SPDX-License-Identifier: Apache-2.0
//
// All kernels that this processor runs give the digests of the baseline, one-shot and streaming, at
// every length where the algorithm changes its path.
#include "core/integrity/xxh3_kernel_internal.h"

#ifdef SHW_XXH3_WIDE
#include <cpuid.h>
#endif

#include <array>
#include <optional>
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

#ifdef SHW_XXH3_WIDE
// Whether the processor says that upper halves of its vector registers are in use (XINUSE of the
// instruction XGETBV); nothing where it cannot be asked.
std::optional<bool> upper_halves_in_use() {
  constexpr unsigned kXsaveLeaf = 0xD;
  constexpr unsigned kTellsInUse = 1U << 2;
  constexpr unsigned kUpperHalves = 1U << 2;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(kXsaveLeaf, 1, &eax, &ebx, &ecx, &edx) == 0 || (eax & kTellsInUse) == 0)
    return std::nullopt;
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(1));
  return (eax & kUpperHalves) != 0;
}

// Dirty ones slow down whatever comes next: planning took 1.7 times as long behind a digest.
TEST(Xxh3Kernel, LeavesNoUpperHalvesInUse) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no wide registers";
  asm volatile("vpcmpeqd %%ymm0, %%ymm0, %%ymm0" ::: "xmm0");
  const bool dirty = upper_halves_in_use().value_or(false);
  asm volatile("vzeroupper" ::: "xmm0");
  if (!dirty || upper_halves_in_use() != false)
    GTEST_SKIP() << "this processor does not tell which of its registers are in use";
  const std::vector<std::byte> bytes(5000, std::byte{1});
  std::array<unsigned char, 16> digest{};
  for (const Xxh3Kernel* kernel : kernels_of_this_processor()) {
    for (const size_t size : {size_t{8}, size_t{200}, size_t{300}, bytes.size()}) {
      kernel->hash(bytes.data(), size, digest.data());
      const auto after_hash = upper_halves_in_use();
      Xxh3State state;
      kernel->reset(&state);
      const auto after_reset = upper_halves_in_use();
      kernel->update(&state, bytes.data(), size);
      const auto after_update = upper_halves_in_use();
      kernel->digest(&state, digest.data());
      const auto after_digest = upper_halves_in_use();
      EXPECT_EQ(after_hash, false) << kernel->name << " " << size;
      EXPECT_EQ(after_reset, false) << kernel->name << " " << size;
      EXPECT_EQ(after_update, false) << kernel->name << " " << size;
      EXPECT_EQ(after_digest, false) << kernel->name << " " << size;
    }
  }
}
#endif

}  // namespace
}  // namespace shardwright::integrity::internal
