// SPDX-License-Identifier: Apache-2.0
//
// FileCursor: where the next chunk or object of a rank's file goes. Large ones begin at multiples of
// kExtentAlignmentBytes, smaller ones at multiples of kSlabAlignmentBytes, empty ones anywhere.
#pragma once

#include <limits>
#include <string>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"

namespace shardwright::plan::internal {

struct FileCursor {
  uint64_t end = kExtentAlignmentBytes;  // of what is placed

  // Files end far below 2^63, the limit of file offsets: RESOURCE_EXHAUSTED past 2^62.
  Status place(int64_t rank, uint64_t bytes, uint64_t* position) {
    const uint64_t alignment =
        bytes >= kSlabChunkLimitBytes ? kExtentAlignmentBytes : kSlabAlignmentBytes;
    uint64_t begin = end;
    uint64_t new_end = 0;
    if ((bytes != 0 && !checked_round_up(end, alignment, &begin)) ||
        !checked_add(begin, bytes, &new_end) ||
        std::cmp_greater(new_end, std::numeric_limits<int64_t>::max() / 2)) {
      return resource_exhausted(
                 "file_size",
                 fmt::format("rank {} would write a file of more than 2^62 bytes", rank))
          .with_detail("rank", std::to_string(rank));
    }
    *position = begin;
    end = new_end;
    return {};
  }
};

}  // namespace shardwright::plan::internal
