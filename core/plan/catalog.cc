// SPDX-License-Identifier: Apache-2.0
//
// Accessors of catalogs.
#include "core/plan/catalog.h"

#include <algorithm>
#include <utility>

#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan {

TextTable::TextTable() : ends_(1, 0) {}

TextTable TextTable::from_parts(std::vector<char> blob, std::vector<uint64_t> ends) {
  TextTable column;
  column.blob_ = std::move(blob);
  column.ends_ = std::move(ends);
  return column;
}

TextId TextTable::append(std::string_view text) {
  if (text.empty()) return 0;
  blob_.insert(blob_.end(), text.begin(), text.end());
  ends_.push_back(blob_.size());
  return static_cast<TextId>(ends_.size() - 1);
}

std::string_view TextTable::at(TextId id) const {
  const uint64_t begin = id == 0 ? 0 : ends_[id - 1];
  return {blob_.data() + begin, ends_[id] - begin};
}

void TextTable::reserve(size_t texts, size_t bytes) {
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

ExtentPair internal::grid_pair(const Catalog& catalog, const TensorRecord& tensor, uint64_t chunk,
                               uint32_t k) {
  uint64_t part = chunk - tensor.chunk_begin;
  for (uint32_t later = split_count(tensor); --later > k;)
    part /= split_of(catalog, tensor, later).part_count();
  const DimSplit& split = split_of(catalog, tensor, k);
  const IndexRange range = split[part % split.part_count()];
  return {range.begin, range.size};
}

// Begins where the tensor would be if all had equally many chunks, and goes on from there in steps
// that grow: so a chunk of a large catalog is found in a few of its pages. Tensors without chunks
// begin where the next one does: the last that begins there has the chunk.
size_t Catalog::tensor_of(uint64_t chunk) const {
  __extension__ using Wide = unsigned __int128;
  const size_t count = tensors.size();
  const uint64_t chunks = std::max(chunk_count(), chunk + 1);  // never 0
  const auto guess = static_cast<size_t>(static_cast<Wide>(chunk) * count / chunks);
  size_t first = 0;  // begins at the chunk or before it
  size_t end = count;
  if (tensors[guess].chunk_begin <= chunk) {
    first = guess;
    for (size_t step = 1; first + step < count; step *= 2) {
      if (tensors[first + step].chunk_begin > chunk) {
        end = first + step;
        break;
      }
      first += step;
    }
  } else {
    end = guess;
    for (size_t step = 1; step < end; step *= 2) {
      if (tensors[end - step].chunk_begin <= chunk) {
        first = end - step;
        break;
      }
      end -= step;
    }
  }
  const auto after = std::ranges::upper_bound(tensors.begin() + static_cast<std::ptrdiff_t>(first),
                                              tensors.begin() + static_cast<std::ptrdiff_t>(end),
                                              chunk, {}, &TensorRecord::chunk_begin);
  return static_cast<size_t>(after - tensors.begin()) - 1;
}

uint32_t Catalog::place_of(uint64_t chunk) const {
  return place_of(tensor_of(chunk), chunk);
}

uint32_t Catalog::place_of(size_t tensor, uint64_t chunk) const {
  return internal::chunk_place(*this, tensors[tensor], chunk);
}

Box Catalog::chunk_box(uint64_t chunk) const {
  const size_t tensor = tensor_of(chunk);
  return internal::chunk_box(*this, tensor, internal::split_dims(*this, tensor), chunk);
}

uint64_t Catalog::chunk_bytes(uint64_t chunk) const {
  const size_t tensor = tensor_of(chunk);
  const TensorRecord& record = tensors[tensor];
  const internal::SplitDims split = internal::split_dims(*this, tensor);
  return packed_bytes(static_cast<uint64_t>(dtype_bits(record.dtype)),
                      internal::chunk_elements(*this, record, split, chunk));
}

uint64_t Catalog::tensor_bytes(size_t tensor) const {
  const auto bits = static_cast<uint64_t>(dtype_bits(tensors[tensor].dtype));
  return packed_bytes(bits, element_count_of(shape(tensor)));
}

uint64_t Catalog::payload_bytes() const {
  uint64_t bytes = 0;
  for (size_t t = 0; t < tensors.size(); ++t) bytes += tensor_bytes(t);
  for (const ObjectRecord& object : objects) bytes += object.size_bytes;
  return bytes;
}

}  // namespace shardwright::plan
