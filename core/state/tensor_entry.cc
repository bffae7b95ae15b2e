// SPDX-License-Identifier: Apache-2.0
#include "core/state/tensor_entry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/limits.h"

namespace shardwright {
namespace {

constexpr std::array<int64_t, static_cast<size_t>(kMaxTensorRank)> kOrigin{};

}  // namespace

std::string_view entry_kind_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::kAuto:
      return "auto";
    case EntryKind::kReplicated:
      return "replicated";
    case EntryKind::kSharded:
      return "sharded";
    case EntryKind::kRankLocal:
      return "rank_local";
  }
  return "unknown";
}

PieceList PieceList::whole(std::span<const int64_t> shape) {
  return {shape.size(), 1, kOrigin.data(), shape.data(), nullptr};
}

PieceList PieceBuffer::assign(size_t rank, std::span<const Piece> pieces) {
  offsets_.clear();
  sizes_.clear();
  local_offsets_.clear();
  for (const Piece& piece : pieces) {
    offsets_.insert(offsets_.end(), piece.box.offsets.begin(), piece.box.offsets.end());
    sizes_.insert(sizes_.end(), piece.box.sizes.begin(), piece.box.sizes.end());
    local_offsets_.push_back(piece.local_offset_elements);
  }
  return {rank, pieces.size(), offsets_.data(), sizes_.data(), local_offsets_.data()};
}

TensorSpan memory_of_piece(const TensorRef& tensor, size_t piece) {
  TensorSpan span = tensor.local;
  span.data = tensor.memory.data(piece);
  span.shape = tensor.pieces.sizes(piece);
  span.strides = tensor.memory.strides(piece);
  return span;
}

bool covers_whole(const TensorRef& tensor) {
  return tensor.pieces.size() == 1 &&
         std::ranges::equal(tensor.pieces.sizes(0), tensor.global_shape);
}

TensorEntry plain_tensor_entry(std::string name, TensorView local) {
  TensorEntry entry;
  entry.name = std::move(name);
  entry.global_shape = local.shape;
  entry.pieces.push_back({whole_box(local.shape), 0});
  entry.local = std::move(local);
  return entry;
}

}  // namespace shardwright
