// SPDX-License-Identifier: Apache-2.0
//
// Accessors of catalogs.
#include "core/plan/catalog.h"

#include <utility>

#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan {

TextColumn::TextColumn() : ends_(1, 0) {}

TextColumn TextColumn::from_parts(std::vector<char> blob, std::vector<uint64_t> ends) {
  TextColumn column;
  column.blob_ = std::move(blob);
  column.ends_ = std::move(ends);
  return column;
}

TextId TextColumn::append(std::string_view text) {
  if (text.empty()) return 0;
  blob_.insert(blob_.end(), text.begin(), text.end());
  ends_.push_back(blob_.size());
  return static_cast<TextId>(ends_.size() - 1);
}

std::string_view TextColumn::at(TextId id) const {
  const uint64_t begin = id == 0 ? 0 : ends_[id - 1];
  return {blob_.data() + begin, ends_[id] - begin};
}

void TextColumn::reserve(size_t texts, size_t bytes) {
  ends_.reserve(texts + 1);
  blob_.reserve(bytes);
}

Box Catalog::chunk_box(size_t chunk) const {
  const TensorRecord& tensor = tensors[chunks[chunk].tensor];
  Box box = whole_box(shape(chunks[chunk].tensor));
  const internal::SplitDims split = internal::split_dims(*this, chunks[chunk].tensor);
  for (uint32_t k = 0; k < split.count; ++k) {
    const ExtentPair pair = internal::chunk_pair(*this, tensor, chunk, k);
    box.offsets[split.dims[k]] = pair.offset;
    box.sizes[split.dims[k]] = pair.size;
  }
  return box;
}

int64_t Catalog::chunk_elements(size_t chunk) const {
  const uint32_t tensor = chunks[chunk].tensor;
  return internal::chunk_elements(*this, tensors[tensor], internal::split_dims(*this, tensor),
                                  chunk);
}

uint64_t Catalog::chunk_bytes(size_t chunk) const {
  const auto bits = static_cast<uint64_t>(dtype_bits(tensors[chunks[chunk].tensor].dtype));
  return internal::packed_bytes(bits, chunk_elements(chunk));
}

uint64_t Catalog::tensor_bytes(size_t tensor) const {
  int64_t elements = 1;
  for (const int64_t extent : shape(tensor)) {
    if (extent == 0) return 0;
    elements *= extent;
  }
  return internal::packed_bytes(static_cast<uint64_t>(dtype_bits(tensors[tensor].dtype)), elements);
}

uint64_t Catalog::payload_bytes() const {
  uint64_t bytes = 0;
  for (size_t t = 0; t < tensors.size(); ++t) bytes += tensor_bytes(t);
  for (const ObjectRecord& object : objects) bytes += object.size_bytes;
  return bytes;
}

}  // namespace shardwright::plan
