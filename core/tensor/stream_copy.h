// SPDX-License-Identifier: Apache-2.0
//
// Long copies that do not wash out the caches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardwright {

// count runs of bytes each; on both sides the next begins a stride behind the last.
struct RunCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  int64_t to_stride = 0;
  int64_t from_stride = 0;
  uint64_t bytes = 0;
  uint64_t count = 1;
};

// Calls copy_run(to, from) for each run.
template <typename CopyRun>
void for_runs(const RunCopy& copy, const CopyRun& copy_run) {
  std::byte* to = copy.to;
  const std::byte* from = copy.from;
  for (uint64_t i = 0; i < copy.count; ++i, to += copy.to_stride, from += copy.from_stride) {
    copy_run(to, from);
  }
}

// memcpy of bytes that are read again much later, if at all: copies of many bytes go round the
// caches, which then need not fetch what is overwritten: a third of the traffic. Any thread; the
// two sides do not overlap.
void stream_copy(const RunCopy& copy);

}  // namespace shardwright
