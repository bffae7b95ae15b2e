// SPDX-License-Identifier: Apache-2.0
//
// The C library does the same from a length on that grows with the cache of the machine: hundreds
// of MiB on a large one, more than is ever copied at a time here.
#include "core/tensor/stream_copy.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace shardwright {
namespace {

constexpr uint64_t kStreamBytes = uint64_t{128} << 10;  // below, bytes stay in a core's cache
constexpr uint64_t kLineBytes = 64;
// Shorter runs lie mostly in lines that they share with others.
constexpr uint64_t kLeastRunBytes = 4 * kLineBytes;

#if defined(__SSE2__)
// Whole lines of the target go round the caches, what is in front of them and behind does not.
void stream_run(std::byte* to, const std::byte* from, uint64_t bytes) {
  const uint64_t before = std::min((0 - reinterpret_cast<uintptr_t>(to)) % kLineBytes, bytes);
  std::memcpy(to, from, before);
  const uint64_t end = before + (bytes - before) / kLineBytes * kLineBytes;
  for (uint64_t at = before; at < end; at += kLineBytes) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i first = _mm_loadu_si128(source);
    const __m128i second = _mm_loadu_si128(source + 1);
    const __m128i third = _mm_loadu_si128(source + 2);
    const __m128i fourth = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, first);
    _mm_stream_si128(target + 1, second);
    _mm_stream_si128(target + 2, third);
    _mm_stream_si128(target + 3, fourth);
  }
  std::memcpy(to + end, from + end, bytes - end);
}
#endif

}  // namespace

void stream_copy(const RunCopy& copy) {
#if defined(__SSE2__)
  if (copy.bytes >= kLeastRunBytes && copy.bytes * copy.count >= kStreamBytes) {
    for_runs(copy, [&](std::byte* to, const std::byte* from) { stream_run(to, from, copy.bytes); });
    _mm_sfence();  // before another thread is told of them
    return;
  }
#endif
  for_runs(copy, [&](std::byte* to, const std::byte* from) { std::memcpy(to, from, copy.bytes); });
}

}  // namespace shardwright
