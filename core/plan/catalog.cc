// SPDX-License-Identifier: Apache-2.0
//
// Accessors of catalogs.
#include "core/plan/catalog.h"

#include <utility>

#include "core/plan/catalog_view.h"
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

Box box_of(std::span<const ExtentPair> pairs) {
  Box box{Dims(pairs.size(), 0), Dims(pairs.size(), 0)};
  for (size_t d = 0; d < pairs.size(); ++d) {
    box.offsets[d] = pairs[d].offset;
    box.sizes[d] = pairs[d].size;
  }
  return box;
}

Box chunk_box_of(const CatalogView& catalog, size_t chunk) {
  const uint32_t index = catalog.chunks[chunk].tensor;
  Box box = whole_box(catalog.shape(index));
  const internal::SplitDims split = internal::split_dims(catalog, index);
  for (uint32_t k = 0; k < split.count; ++k) {
    const ExtentPair pair = internal::chunk_pair(catalog, catalog.tensors[index], chunk, k);
    box.offsets[split.dims[k]] = pair.offset;
    box.sizes[split.dims[k]] = pair.size;
  }
  return box;
}

uint64_t tensor_bytes_of(const CatalogView& catalog, size_t tensor) {
  int64_t elements = 1;
  for (const int64_t extent : catalog.shape(tensor)) {
    if (extent == 0) return 0;
    elements *= extent;
  }
  const auto bits = static_cast<uint64_t>(dtype_bits(catalog.tensors[tensor].dtype));
  return internal::packed_bytes(bits, elements);
}

Box Catalog::chunk_box(size_t chunk) const {
  return chunk_box_of(view_of(*this), chunk);
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
  return tensor_bytes_of(view_of(*this), tensor);
}

uint64_t Catalog::payload_bytes() const {
  uint64_t bytes = 0;
  for (size_t t = 0; t < tensors.size(); ++t) bytes += tensor_bytes(t);
  for (const ObjectRecord& object : objects) bytes += object.size_bytes;
  return bytes;
}

}  // namespace shardwright::plan
