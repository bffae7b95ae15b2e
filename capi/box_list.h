// SPDX-License-Identifier: Apache-2.0
//
// How boxes leave the library: values back to back in an array of the caller. Nothing is written
// unless all fit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/layout/layout.h"
#include "shardwright/base.h"

namespace shardwright::capi {

// Memory of the caller, and what the function calls it. `capacity` counts values; `local_offsets`
// has room for one per box that fits, NULL = not wanted.
struct ValueSink {
  const char* parameter = "";
  int64_t* values = nullptr;
  uint64_t capacity = 0;
  uint64_t* size = nullptr;
  int64_t* local_offsets = nullptr;
};

// Writes the values, or answers BUFFER_TOO_SMALL; in both cases *size gets their number.
Status write_values(std::span<const int64_t> values, const ValueSink& sink, shw_status* answer);
// The same for boxes: the offsets of each, then its sizes.
Status write_boxes(const std::vector<Piece>& pieces, const ValueSink& sink, shw_status* answer);

}  // namespace shardwright::capi
