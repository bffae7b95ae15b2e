// SPDX-License-Identifier: Apache-2.0
//
// Matches the boxes of one wanted tensor with stored chunks and proves that they are filled. A grid
// is walked row by row: its parts follow each other without gap, so it is enough that the first and
// the last one reach the ends of the region. Elsewhere corner sums of what is read are compared
// with those of the region. Copies of a chunk are read from the one with the lowest number.
#include <algorithm>

#include "core/layout/box_bytes.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/match_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr double kEdgeFactor = 1.05;
constexpr double kEdgeChunks = 4;

// The part of a piece that is stored; dimensions of the tensor.
Box stored_part(const Box& piece, std::span<const int64_t> stored_shape) {
  Box part = piece;
  for (size_t d = 0; d < stored_shape.size(); ++d) {
    part.offsets[d] = std::min(piece.offsets[d], stored_shape[d]);
    part.sizes[d] = std::min(piece.offsets[d] + piece.sizes[d], stored_shape[d]) - part.offsets[d];
  }
  return part;
}

// As many of the chunks as the region has of the tensor, and a few more for those at its edges.
uint64_t share_of_chunks(const TensorRecord& record, const SplitDims& split,
                         const Interval* region) {
  double share = 1;
  for (uint32_t k = 0; k < split.count; ++k) {
    share *= static_cast<double>(region[k].end - region[k].begin) /
             static_cast<double>(std::max<int64_t>(split.extents[k], 1));
  }
  const auto chunks = static_cast<double>(record.chunk_count);
  return static_cast<uint64_t>(std::min(chunks, share * chunks * kEdgeFactor + kEdgeChunks));
}

class PieceMatch {
 public:
  PieceMatch(const CatalogIndex& stored, size_t tensor, const TensorRef& wanted, uint32_t entry)
      : catalog_(stored.catalog()),
        tensor_(tensor),
        record_(catalog_.tensors[tensor]),
        search_(stored.search(tensor)),
        shape_(catalog_.shape(tensor)),
        split_(split_dims(catalog_, tensor)),
        wanted_(wanted),
        entry_(entry) {}

  // False when nothing of the piece is stored.
  bool take(uint32_t piece) {
    piece_ = piece;
    part_ = stored_part(wanted_.pieces[piece].box, shape_);
    region_ = region_of(split_, part_);
    return !box_is_empty(part_);
  }

  // Of the piece that was taken: as many as add_reads adds of a grid, else a guess.
  uint64_t expected() const {
    if (search_.grid() == nullptr) return share_of_chunks(record_, split_, region_.data());
    GridRange range;
    if (!search_.grid()->meeting(region_.data(), &range)) return 0;
    uint64_t cells = 1;
    for (uint32_t k = 0; k < split_.count; ++k) cells *= range.last[k] - range.first[k];
    return cells;
  }

  Status add_reads(ReadColumn* reads) {
    const size_t first = reads->size();
    if (search_.grid() != nullptr) {
      add_grid(*search_.grid(), reads);
    } else {
      SHW_RETURN_IF_ERROR(add_chunks(reads));
    }
    return check_bytes(*reads, first);
  }

 private:
  // A row of cells differs in the last split dimension only.
  void add_grid(const ChunkGrid& grid, ReadColumn* reads) {
    GridRange range;
    grid.meeting(region_.data(), &range);  // a grid covers the tensor, so something meets
    const uint32_t innermost = split_.count - 1;
    const size_t dimensions = part_.sizes.size();
    grid.split(innermost).read_cuts(range.first[innermost], range.last[innermost], &cuts_);
    const size_t fast = split_.dims[innermost];
    Box box = part_;
    for_each_row(grid, range, [&](const auto& part, uint64_t first, uint64_t end) {
      for (uint32_t k = 0; k < innermost; ++k) {
        const IndexRange own = grid.split(k)[part[k]];
        const Interval common = common_of({own.begin, own.begin + own.size}, region_[k]);
        box.offsets[split_.dims[k]] = common.begin;
        box.sizes[split_.dims[k]] = common.end - common.begin;
      }
      size_t read = reads->size();
      reads->append_blank(end - first, dimensions);
      const int64_t* cut = cuts_.data();
      int64_t* numbers = reads->numbers(read);
      for (uint64_t cell = first; cell < end; ++cell, ++cut, ++read, numbers += 2 * dimensions) {
        reads->key(read) = {record_.chunk_begin + grid.first_chunk(cell), entry_, piece_};
        for (size_t d = 0; d < dimensions; ++d) {
          numbers[d] = box.offsets[d];
          numbers[dimensions + d] = box.sizes[d];
        }
        const Interval common = common_of({cut[0], cut[1]}, region_[innermost]);
        numbers[fast] = common.begin;
        numbers[dimensions + fast] = common.end - common.begin;
      }
    });
  }

  Status add_chunks(ReadColumn* reads) {
    search_.filling(region_.data(), &hits_);
    CornerTotal total(split_.count);
    const size_t dimensions = part_.sizes.size();
    Region common;
    size_t read = reads->size();
    reads->append_blank(hits_.size(), dimensions);
    int64_t* numbers = hits_.empty() ? nullptr : reads->numbers(read);
    for (const uint64_t chunk : hits_) {
      reads->key(read++) = {chunk, entry_, piece_};
      std::ranges::copy(part_.offsets, numbers);
      std::ranges::copy(part_.sizes, numbers + dimensions);
      for (uint32_t k = 0; k < split_.count; ++k) {
        const ExtentPair own = box_pair(catalog_, record_, chunk, k);
        common[k] = common_of({own.offset, own.offset + own.size}, region_[k]);
        numbers[split_.dims[k]] = common[k].begin;
        numbers[dimensions + split_.dims[k]] = common[k].end - common[k].begin;
      }
      total.add(common.data());
      numbers += 2 * dimensions;
    }
    if (total.sum() == box_corner_sum({region_.data(), split_.count})) return {};
    return not_filled(catalog_, tensor_, part_);
  }

  Status check_bytes(const ReadColumn& reads, size_t first) const {
    if (!dtype_is_subbyte(record_.dtype)) return {};
    for (size_t i = first; i < reads.size(); ++i) {
      SHW_RETURN_IF_ERROR(
          check_whole_bytes(wanted_.name, record_.dtype, wanted_.global_shape, reads.box(i)));
    }
    return {};
  }

  const Catalog& catalog_;
  const size_t tensor_;
  const TensorRecord& record_;
  const ChunkSearch& search_;
  const std::span<const int64_t> shape_;
  const SplitDims split_;
  const TensorRef& wanted_;
  const uint32_t entry_;
  uint32_t piece_ = 0;
  Box part_;
  Region region_;  // of part_
  std::vector<uint64_t> hits_;
  std::vector<int64_t> cuts_;  // of a grid in the last split dimension, as far as the region goes
};

}  // namespace

Status match_pieces(const CatalogIndex& stored, size_t tensor, const TensorRef& wanted,
                    uint32_t entry, ReadColumn* reads) {
  const size_t first = reads->size();
  PieceMatch match(stored, tensor, wanted, entry);
  for (uint32_t p = 0; p < wanted.pieces.size(); ++p) {
    if (match.take(p)) SHW_RETURN_IF_ERROR(match.add_reads(reads));
  }
  reads->sort_from(first);
  return {};
}

uint64_t expected_reads(const CatalogIndex& stored, size_t tensor, const TensorRef& wanted) {
  PieceMatch match(stored, tensor, wanted, 0);
  uint64_t reads = 0;
  for (uint32_t p = 0; p < wanted.pieces.size(); ++p) reads += match.take(p) ? match.expected() : 0;
  return reads;
}

}  // namespace shardwright::plan::internal
