// SPDX-License-Identifier: Apache-2.0
//
// How long a run is. The long one (SHW_SOAK) repeats more. Under AddressSanitizer or
// ThreadSanitizer, whose allocators and clocks say nothing about ours, random tests repeat a tenth:
// a sanitizer finds in few rounds what it finds in a function, and the values are compared in all
// of them without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace shardwright::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

inline bool is_soak() {
  return std::getenv("SHW_SOAK") != nullptr;
}

// Rounds of a random test.
inline int64_t rounds(int64_t usual, int64_t soak) {
  const int64_t wanted = is_soak() ? soak : usual;
  return kSanitized && wanted >= 10 ? wanted / 10 : wanted;
}
inline int64_t rounds(int64_t usual) {
  return rounds(usual, usual);
}

// Steps of a loop over all bits or bytes of something: every one, or under a sanitizer every 11th,
// which comes by all eight bits.
inline constexpr size_t kEachBit = kSanitized ? 11 : 1;

}  // namespace shardwright::test
