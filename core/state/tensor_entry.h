// SPDX-License-Identifier: Apache-2.0
//
// One tensor entry of a state: TensorRef borrows everything, TensorEntry owns its texts, shape and
// pieces. Value types.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/layout/layout.h"
#include "core/tensor/tensor_view.h"

namespace shardwright {

// Who holds an entry. kAuto: replicated for plain tensors and objects, sharded for entries with
// boxes or a layout.
enum class EntryKind : uint8_t { kAuto = 0, kReplicated = 1, kSharded = 2, kRankLocal = 3 };
std::string_view entry_kind_name(EntryKind kind);  // "replicated", "sharded", "rank_local", "auto"

// The boxes of one entry and where each begins in its local tensor, borrowed from flat columns:
// offsets and sizes hold one value per dimension and piece, back to back.
class PieceList {
 public:
  PieceList() = default;
  // local_offsets: in row-major elements, one per piece; null = all 0.
  PieceList(size_t rank, size_t count, const int64_t* offsets, const int64_t* sizes,
            const int64_t* local_offsets)
      : rank_(rank),
        count_(count),
        offsets_(offsets),
        sizes_(sizes),
        local_offsets_(local_offsets) {}
  // The one piece that covers a tensor of this shape (at most kMaxTensorRank dimensions).
  static PieceList whole(std::span<const int64_t> shape);

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::span<const int64_t> offsets(size_t piece) const { return {offsets_ + piece * rank_, rank_}; }
  std::span<const int64_t> sizes(size_t piece) const { return {sizes_ + piece * rank_, rank_}; }
  int64_t local_offset(size_t piece) const {
    return local_offsets_ == nullptr ? 0 : local_offsets_[piece];
  }
  // Copies the box.
  Piece operator[](size_t piece) const {
    return {{Dims(offsets(piece)), Dims(sizes(piece))}, local_offset(piece)};
  }

 private:
  size_t rank_ = 0;
  size_t count_ = 0;
  const int64_t* offsets_ = nullptr;
  const int64_t* sizes_ = nullptr;
  const int64_t* local_offsets_ = nullptr;
};

// Pieces brought into the columns that a PieceList borrows.
class PieceBuffer {
 public:
  // The boxes have `rank` dimensions. The list holds until the next call.
  PieceList assign(size_t rank, std::span<const Piece> pieces);

 private:
  std::vector<int64_t> offsets_;
  std::vector<int64_t> sizes_;
  std::vector<int64_t> local_offsets_;
};

// Memory of each piece of an entry whose pieces do not lie in one local tensor, borrowed from flat
// columns; none for all other entries.
class PieceMemory {
 public:
  PieceMemory() = default;
  // addresses: one per piece; strides: in elements, one per dimension and piece, back to back.
  PieceMemory(size_t rank, const int64_t* addresses, const int64_t* strides)
      : rank_(rank), addresses_(addresses), strides_(strides) {}

  bool exists() const { return addresses_ != nullptr; }
  std::byte* data(size_t piece) const { return std::bit_cast<std::byte*>(addresses_[piece]); }
  std::span<const int64_t> strides(size_t piece) const { return {strides_ + piece * rank_, rank_}; }

 private:
  size_t rank_ = 0;
  const int64_t* addresses_ = nullptr;
  const int64_t* strides_ = nullptr;
};

struct TensorRef {
  std::string_view name;
  std::string_view path;  // nested path text; empty = the flat name is the path
  EntryKind kind = EntryKind::kAuto;
  TensorSpan local;  // memory of this rank; data may be null when the rank holds no element
  std::span<const int64_t> global_shape;
  PieceList pieces;  // boxes inside global_shape and their place in the local tensor; may be empty
  // The rule that gave the pieces, or null. Planners look whether it gives them; nothing depends on
  // that it does.
  const Layout::Ptr* layout = nullptr;
  // Where it exists, `local` says what the pieces have in common (dtype, device, read_only): a
  // tensor of one dimension in which they would lie one behind the other.
  PieceMemory memory = {};
  bool replica = false;  // another rank saves what this one holds; loads fill it
  // Into how many equal parts each axis of the whole tensor is cut before the pieces were chosen, 0
  // where it is no regular cut. Empty: nobody says.
  std::span<const int64_t> fragments = {};
};

// The memory of a piece that has memory of its own, shaped like its box.
TensorSpan memory_of_piece(const TensorRef& tensor, size_t piece);

// True for one piece that covers the whole tensor.
bool covers_whole(const TensorRef& tensor);

struct TensorEntry {
  std::string name;
  std::string path;
  EntryKind kind = EntryKind::kAuto;
  TensorView local;
  Dims global_shape;
  std::vector<Piece> pieces;
  Layout::Ptr layout = nullptr;  // co-owned by the states that hold the entry
  bool replica = false;          // see TensorRef
  Dims fragments = {};           // see TensorRef
};

// The entry of a whole plain tensor: one piece that covers global_shape = local.shape.
TensorEntry plain_tensor_entry(std::string name, TensorView local);

}  // namespace shardwright
