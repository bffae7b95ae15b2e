// SPDX-License-Identifier: Apache-2.0
#include "core/format/zarr/chunk_grid.h"

#include <algorithm>
#include <charconv>

namespace shardwright::format::zarr {
namespace {

// A number as zarr writes it: one way to write each.
std::optional<int64_t> plain_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0') || text[0] == '-') return std::nullopt;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

ChunkGrid::ChunkGrid(const ArrayHeader& header)
    : header_(header), extents_(header.shape.size(), 0) {
  const auto elements = static_cast<uint64_t>(element_count_of(header.chunks));
  file_bytes_ = elements * static_cast<uint64_t>(dtype_bits(header.dtype) / 8);
  if (element_count_of(header.shape) == 0) return;
  for (size_t d = 0; d < extents_.size(); ++d)
    extents_[d] = (header.shape[d] - 1) / header.chunks[d] + 1;
  count_ = static_cast<uint64_t>(element_count_of(extents_));
}

std::optional<Dims> ChunkGrid::index_of(std::string_view name) const {
  if (extents_.empty()) return name == "0" ? std::optional(Dims()) : std::nullopt;
  Dims index(extents_.size(), 0);
  for (size_t d = 0; d < index.size(); ++d) {
    const bool is_last = d + 1 == index.size();
    const size_t end = is_last ? name.size() : name.find(header_.separator);
    if (end == std::string_view::npos) return std::nullopt;
    const std::optional<int64_t> number = plain_number(name.substr(0, end));
    if (!number.has_value()) return std::nullopt;
    index[d] = *number;
    if (!is_last) name.remove_prefix(end + 1);
  }
  return index;
}

std::optional<uint64_t> ChunkGrid::number_of(const Dims& index) const {
  if (count_ == 0) return std::nullopt;
  uint64_t number = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] >= extents_[d]) return std::nullopt;
    number = number * static_cast<uint64_t>(extents_[d]) + static_cast<uint64_t>(index[d]);
  }
  return number;
}

Dims ChunkGrid::index_at(uint64_t number) const {
  Dims index(extents_.size(), 0);
  for (size_t d = index.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(number % static_cast<uint64_t>(extents_[d]));
    number /= static_cast<uint64_t>(extents_[d]);
  }
  return index;
}

std::string ChunkGrid::name_of(uint64_t number) const {
  if (extents_.empty()) return "0";
  std::string name;
  for (const int64_t index : index_at(number)) {
    if (!name.empty()) name += header_.separator;
    name += std::to_string(index);
  }
  return name;
}

Box ChunkGrid::box_of(uint64_t number) const {
  Box box{index_at(number), header_.chunks};
  for (size_t d = 0; d < extents_.size(); ++d) {
    box.offsets[d] *= header_.chunks[d];
    box.sizes[d] = std::min(header_.chunks[d], header_.shape[d] - box.offsets[d]);
  }
  return box;
}

}  // namespace shardwright::format::zarr
