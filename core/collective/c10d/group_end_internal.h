// SPDX-License-Identifier: Apache-2.0
//
// Why a side group was given up, as it travels through a store: numbers in little-endian order,
// then the status. Values; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/status.h"

namespace shardwright::collective::internal {

struct GroupEnd {
  Status cause;
  uint64_t call = 0;              // number of the call over the group in which it ended
  uint64_t operations = 0;        // that the rank which gave up had completed in that call
  int32_t rank = 0;               // the one that gave up
  bool transport_failed = false;  // and not the rank itself: another one may be gone
};

// std::bad_alloc without memory.
std::vector<uint8_t> encode_end(const GroupEnd& end);
// Bytes that are none give an end with the cause INTERNAL.
GroupEnd decode_end(const std::vector<uint8_t>& bytes);

}  // namespace shardwright::collective::internal
