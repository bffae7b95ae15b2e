// SPDX-License-Identifier: Apache-2.0
#include "capi/box_list.h"

#include <algorithm>

#include "capi/boundary/arguments.h"

namespace shardwright::capi {

Status write_values(std::span<const int64_t> values, const ValueSink& sink, shw_status* answer) {
  const bool fits = values.size() <= sink.capacity;
  if (fits && !values.empty()) {
    SHW_RETURN_IF_ERROR(need_pointer(sink.values, sink.parameter));
    std::ranges::copy(values, sink.values);
  }
  if (!fits) *answer = SHW_BUFFER_TOO_SMALL;
  *sink.size = values.size();
  return {};
}

Status write_boxes(const std::vector<Piece>& pieces, const ValueSink& sink, shw_status* answer) {
  std::vector<int64_t> values;
  for (const Piece& piece : pieces) {
    values.insert(values.end(), piece.box.offsets.begin(), piece.box.offsets.end());
    values.insert(values.end(), piece.box.sizes.begin(), piece.box.sizes.end());
  }
  SHW_RETURN_IF_ERROR(write_values(values, sink, answer));
  if (sink.local_offsets == nullptr || *answer == SHW_BUFFER_TOO_SMALL) return {};
  for (size_t i = 0; i < pieces.size(); ++i)
    sink.local_offsets[i] = pieces[i].local_offset_elements;
  return {};
}

}  // namespace shardwright::capi
