// SPDX-License-Identifier: Apache-2.0
//
// The last offset changes fastest, so the parts of a dimension are read along the chunks whose
// number is a multiple of the number of parts of all later dimensions, and then every chunk is
// compared with what the parts say of its place.
#include <array>

#include "core/plan/grid_reader_internal.h"

namespace shardwright::plan::internal {

bool GridReader::read(size_t tensor) {
  tensor_ = &catalog_.tensors[tensor];
  split_ = split_dims(catalog_, tensor);
  if (tensor_->chunk_count == 0 || split_.unsplit_elements == 0) return false;
  uint64_t stride = 1;
  for (uint32_t k = split_.count; k-- > 0;) {
    if (!read_parts(k, stride)) return false;
    stride *= sizes_[k].size();
  }
  return stride == tensor_->chunk_count && every_chunk_fits();
}

// Every stride-th chunk has the next part of dimension k, until the first part comes again.
bool GridReader::read_parts(uint32_t k, uint64_t stride) {
  if (sizes_.size() <= k) sizes_.resize(k + 1);
  std::vector<int64_t>& sizes = sizes_[k];
  sizes.clear();
  int64_t end = 0;
  for (uint64_t c = 0; c < tensor_->chunk_count && end < split_.extents[k]; c += stride) {
    const ExtentPair part = pair(c, k);
    if (part.offset != end || part.size == 0) return false;
    sizes.push_back(part.size);
    end += part.size;
  }
  return end == split_.extents[k] && tensor_->chunk_count % (stride * sizes.size()) == 0;
}

bool GridReader::every_chunk_fits() const {
  if (split_.count < 2) return true;  // read_parts saw every chunk
  struct Place {
    size_t part = 0;
    int64_t offset = 0;
  };
  std::array<Place, kMaxTensorRank> places;
  for (uint32_t k = 0; k < split_.count; ++k) places[k] = {};
  for (uint64_t c = 0; c < tensor_->chunk_count; ++c) {
    for (uint32_t k = 0; k < split_.count; ++k) {
      const ExtentPair own = pair(c, k);
      if (own.offset != places[k].offset || own.size != sizes_[k][places[k].part]) return false;
    }
    for (uint32_t k = split_.count; k-- > 0;) {
      Place& place = places[k];
      place.offset += sizes_[k][place.part];
      if (++place.part < sizes_[k].size()) break;
      place = {};
    }
  }
  return true;
}

}  // namespace shardwright::plan::internal
