// SPDX-License-Identifier: Apache-2.0
//
// Matches the boxes of one wanted tensor with stored chunks and proves that they are filled.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/load/match_internal.h"
#include "core/plan/subbyte_box_internal.h"

namespace shardwright::plan::internal {

Status match_pieces(const CatalogIndex& stored, size_t tensor, const TensorRef& wanted,
                    uint32_t entry, std::vector<ReadItem>* reads) {
  const Catalog& catalog = stored.catalog();
  const DType dtype = catalog.tensors[tensor].dtype;
  for (size_t p = 0; p < wanted.pieces.size(); ++p) {
    const Box piece = wanted.pieces[p].box;
    int64_t filled = 0;
    for (const uint64_t chunk : stored.chunks_meeting(tensor, piece)) {
      ReadItem item{entry, static_cast<uint32_t>(p), chunk,
                    intersect(catalog.chunk_box(chunk), piece)};
      SHW_RETURN_IF_ERROR(check_whole_bytes(wanted.name, dtype, wanted.global_shape, item.box));
      filled += box_element_count(item.box);
      reads->push_back(std::move(item));
    }
    if (filled != box_element_count(piece)) {
      return internal_error(
                 fmt::format(
                     "the stored chunks of tensor '{}' fill {} of the {} elements of box {}",
                     escape_text(wanted.name), filled, box_element_count(piece), box_text(piece)))
          .with_detail("tensor", wanted.name)
          .with_detail("box", box_text(piece));
    }
  }
  return {};
}

}  // namespace shardwright::plan::internal
