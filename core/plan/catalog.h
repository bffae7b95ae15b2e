// SPDX-License-Identifier: Apache-2.0
//
// Catalog: the one description that every plan, manifest and index is made of. Flat columns: texts
// interned once, one record per tensor, one per byte object, and the chunks of each tensor, which
// are either
//   a grid   one split per dimension in which the tensor is cut, and a map from chunks to ranks.
//            The chunks are all combinations of parts, numbered row-major. Splits and maps are
//            shared by all tensors that have the same, so that a grid costs a few bytes whatever
//            the number of its chunks; or
//   boxes    one fixed-size record per chunk, in any order. Only the dimensions in which the tensor
//            is split are stored: two pairs (offset, size) in the record, further ones in a side
//            column.
// What a rank describes is boxes; in what is stored, chunks that are a grid are written as one
// (find_grids), so equal plans are equal in every byte.

// Invariants (check_catalog proves them for anything that came from outside):
//  - chunks are numbered through all tensors in their order: chunk_begin is a running sum, as are
//    shape_begin, grid_begin (over tensors that are grids), box_begin and more_begin (over others);
//  - split_mask has one bit per dimension; every chunk covers a dimension without bit whole;
//  - the splits of a grid have the extents of the shape, its map as many ranks as it has chunks;
//  - of boxes with s > 2 split dimensions, pairs 3 to s of the tensor's k-th lie from
//    more[more_begin + k * (s - 2)] on; pairs of absent split dimensions are zero.
// Thread-compatible value; const calls may run together.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/limits.h"
#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/plan/grid/dim_split.h"
#include "core/plan/grid/rank_map.h"
#include "core/state/state.h"
#include "core/tensor/dtype.h"

namespace shardwright::plan {

// Index into the text column; 0 is the empty text.
using TextId = uint32_t;

// Texts in one blob. Equal texts may have different ids; the empty text is always 0.
class TextTable {
 public:
  TextTable();
  // Takes both columns as they are; check_catalog proves them before at() is called.
  static TextTable from_parts(std::vector<char> blob, std::vector<uint64_t> ends);
  TextId append(std::string_view text);  // always a new id (0 for ""); fewer than 2^32 texts
  std::string_view at(TextId id) const;
  size_t size() const { return ends_.size(); }
  std::span<const char> blob() const { return blob_; }
  std::span<const uint64_t> ends() const { return ends_; }  // end offset of each text in the blob
  void reserve(size_t texts, size_t bytes);

 private:
  std::vector<char> blob_;
  std::vector<uint64_t> ends_;
};

struct TensorRecord {
  TextId name = 0;
  TextId path = 0;
  DType dtype = DType::kInvalid;
  EntryKind kind = EntryKind::kReplicated;  // never kAuto in a catalog
  int32_t rank = -1;                        // owner of a rank_local entry, else -1
  uint64_t shape_begin = 0;                 // into Catalog::shapes
  uint32_t dimension_count = 0;
  uint64_t split_mask = 0;
  uint64_t chunk_begin = 0;  // number of its first chunk
  uint64_t chunk_count = 0;
  uint32_t rank_map = kBoxes;  // of a grid: number in Catalog::rank_maps
  uint64_t grid_begin = 0;     // of a grid: into Catalog::grids
  uint64_t box_begin = 0;      // else: into Catalog::boxes
  uint64_t more_begin = 0;

  static constexpr uint32_t kBoxes = 0xFFFFFFFF;
  bool is_grid() const { return rank_map != kBoxes; }
  friend bool operator==(const TensorRecord&, const TensorRecord&) = default;
};

// A chunk that is no part of a grid. 40 bytes, the same in memory and on the wire.
struct ChunkRecord {
  uint32_t tensor = 0;
  uint32_t place = 0;  // local plan: piece; merged plan and manifest: rank that writes; index: 0
  int64_t offset0 = 0;
  int64_t size0 = 0;
  int64_t offset1 = 0;
  int64_t size1 = 0;
};
static_assert(sizeof(ChunkRecord) == 40);

// Offset and size in the third and each further split dimension.
struct ExtentPair {
  int64_t offset = 0;
  int64_t size = 0;
};
static_assert(sizeof(ExtentPair) == 16);
// The box of one pair per dimension.
Box box_of(std::span<const ExtentPair> pairs);

struct ObjectRecord {
  TextId name = 0;
  TextId path = 0;
  TextId content_type = 0;
  EntryKind kind = EntryKind::kReplicated;
  int32_t rank = -1;   // owner of a rank_local entry, else -1
  uint32_t place = 0;  // as ChunkRecord
  uint64_t size_bytes = 0;
};

class Catalog {
 public:
  TextTable texts;
  std::vector<int64_t> shapes;
  std::vector<TensorRecord> tensors;
  std::vector<DimSplit> splits;    // distinct, in the order in which grids name them first
  std::vector<uint32_t> grids;     // of each grid a split per split dimension
  std::vector<RankMap> rank_maps;  // distinct, in the order in which grids name them first
  std::vector<ChunkRecord> boxes;
  std::vector<ExtentPair> more;
  std::vector<ObjectRecord> objects;

  std::string_view tensor_name(size_t tensor) const { return texts.at(tensors[tensor].name); }
  std::string_view object_name(size_t object) const { return texts.at(objects[object].name); }
  std::span<const int64_t> shape(size_t tensor) const {
    return {shapes.data() + tensors[tensor].shape_begin, tensors[tensor].dimension_count};
  }
  // Of all tensors.
  uint64_t chunk_count() const {
    return tensors.empty() ? 0 : tensors.back().chunk_begin + tensors.back().chunk_count;
  }
  // The tensor of a chunk. O(log tensors), as are the calls below by a chunk alone.
  size_t tensor_of(uint64_t chunk) const;
  // Its place, see ChunkRecord; of a grid the rank.
  uint32_t place_of(uint64_t chunk) const;
  // The same for a chunk of that tensor, without looking for it.
  uint32_t place_of(size_t tensor, uint64_t chunk) const;
  // The chunk's box with all dimensions.
  Box chunk_box(uint64_t chunk) const;
  // Bytes of the chunk's elements, packed; 0 for an empty box.
  uint64_t chunk_bytes(uint64_t chunk) const;
  // Bytes of the whole tensor.
  uint64_t tensor_bytes(size_t tensor) const;
  // Bytes of all tensors and objects: what is stored, without headers, indexes and padding.
  uint64_t payload_bytes() const;
};

// Appends tensors and their chunks to a catalog in order; finish() of the tensor is implicit. The
// split mask of a tensor is the union over its boxes of the dimensions that a box does not cover
// whole.
class CatalogBuilder {
 public:
  // Objects of others' files may be larger than ours.
  explicit CatalogBuilder(Catalog* target, uint64_t max_object_bytes = kMaxObjectBytes)
      : catalog_(target), max_object_bytes_(max_object_bytes) {}
  struct Tensor {
    std::string_view name;
    std::string_view path;
    DType dtype = DType::kInvalid;
    EntryKind kind = EntryKind::kReplicated;
    int32_t rank = -1;
    std::span<const int64_t> shape;
  };
  struct Chunk {
    Box box;
    uint32_t place = 0;
  };
  // INVALID_ARGUMENT when a box does not fit the shape or a count does not fit its field; the
  // catalog is as before then.
  Status add_tensor(const Tensor& tensor, std::span<const Chunk> chunks);
  // Texts come from the three arguments; name, path and content_type of record are ignored.
  Status add_object(const ObjectRecord& record, std::string_view name, std::string_view path,
                    std::string_view content_type);

 private:
  Catalog* catalog_;
  uint64_t max_object_bytes_;
};

// Writes the chunks of each tensor as a grid where they are one in their order: rows and boxes that
// ranks described one by one become what a rule would have said.
void find_grids(Catalog* catalog);

// Every index, mask, count and size in range; texts used at most kMaxTextUses times on the whole;
// names valid UTF-8 and unique per (name, rank); boxes inside shapes; grids that fill theirs; no
// overflow of any byte count. DATA_LOSS naming the record. Linear in the records.
Status check_catalog(const Catalog& catalog);
// The same without stopping: one sentence per finding, at most limit; empty = sound. Objects of
// others' files have up to kMaxDescribedObjectBytes.
std::vector<std::string> catalog_findings(const Catalog& catalog, size_t limit,
                                          uint64_t max_object_bytes = kMaxObjectBytes);

// Chunks of one tensor with equal boxes: an overlap like any other, or copies of one chunk, of
// which a reader takes one.
enum class Copies : int32_t { kRefused = 0, kAllowed = 1 };

// Proof that the chunks of tensor (its distinct boxes, when copies are allowed) cover it exactly
// once: signed corner sums over keyed 122-bit random values (linear in chunks and split
// dimensions), and, when the sums differ, a search by halving that names the culprit, O(n log n).
// INVALID_ARGUMENT with both boxes and places of an overlap, or a box of the hole. Empty tensors
// need no chunk. The catalog passed check_catalog or was built by CatalogBuilder.
// place_noun: the word for places in messages.
Status prove_cover(const Catalog& catalog, size_t tensor, Copies copies = Copies::kRefused,
                   std::string_view place_noun = "place");
// prove_cover for all tensors that are not rank_local, and for each rank_local one by itself. First
// failure.
Status prove_all_covers(const Catalog& catalog, Copies copies = Copies::kRefused,
                        std::string_view place_noun = "place");

}  // namespace shardwright::plan
