// SPDX-License-Identifier: Apache-2.0
//
// LocalPlan: what one rank describes. Its description is said so that ranks which differ only by
// their place in a mesh say the same: it names no rank; a tensor is whole, cut by a layout (a
// number into a table of distinct ones), absent, or a list of boxes that each rank gives itself.
// What only this rank knows is its part: those boxes, the sizes of its rank_local objects, content
// digests of what it holds a part of, and how its host lists all this. Ranks exchange the digest of
// the description, one representative of each distinct one, and parts where there are any.
// Values; thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/digest128.h"
#include "core/layout/shard_axis.h"
#include "core/plan/catalog.h"
#include "core/plan/listing.h"

namespace shardwright::plan {

// How a tensor of a description is held. From kFirstLayout on: layout number form - kFirstLayout.
enum TensorForm : uint32_t { kWhole = 0, kBoxes = 1, kNothing = 2, kFirstLayout = 3 };

struct Description {
  Digest128 digest{};          // of its plan buffer: the one that it was read from, or will be
  Digest128 options_digest{};  // of options_text; equal on all ranks or the save is refused
  std::string options_text;    // "option=value" lines, to name the option that differs
  // Tensors without chunks and objects, in state order. Of rank_local entries the rank is 0 and
  // stands for each rank in turn; a rank_local tensor is whole or boxes, and the size of a
  // rank_local object is 0, for the part has it.
  Catalog catalog;
  std::vector<uint32_t> forms;        // one per tensor
  std::vector<ShardAxis> axes;        // of all layouts, back to back
  std::vector<uint32_t> layout_ends;  // end of each layout in axes
  // Content digests for verify_replicas, one per entry or empty; all-zero = not compared. Of
  // tensors only those that are whole have one here.
  std::vector<Digest128> tensor_digests;
  std::vector<Digest128> object_digests;

  std::span<const ShardAxis> layout(size_t number) const {
    const size_t begin = number == 0 ? 0 : layout_ends[number - 1];
    return {axes.data() + begin, layout_ends[number] - begin};
  }
  bool is_ruled(size_t tensor) const {
    return forms[tensor] != kBoxes && forms[tensor] != kNothing;
  }
  // Of a tensor that is whole or has a layout.
  std::span<const ShardAxis> axes_of(size_t tensor) const {
    return forms[tensor] == kWhole ? std::span<const ShardAxis>()
                                   : layout(forms[tensor] - kFirstLayout);
  }
};

// The boxes that a rank gives for one tensor of its description that is boxes.
struct BoxList {
  uint64_t split_mask = 0;  // dimensions that some box does not cover whole
  uint64_t more_begin = 0;  // into the further pairs of the part
  uint32_t begin = 0;       // into its boxes
  uint32_t count = 0;
  friend bool operator==(const BoxList&, const BoxList&) = default;
};
static_assert(sizeof(BoxList) == 24);

// What one rank adds to its description.
template <template <typename> typename Column>
struct PartOf {
  int32_t rank = 0;
  int32_t world_size = 1;  // 0 = not known, and nothing has a layout: it may be merged at any place
  Digest128 description_digest{};
  Column<BoxList> lists;          // one per tensor that is boxes, in order
  Column<ChunkRecord> boxes;      // place = piece of the entry
  Column<ExtentPair> more;        // third and further split dimensions, box after box
  Column<uint64_t> object_sizes;  // one per rank_local object, in order
  // Tensors that are not whole and have a content digest, ascending, and the digest of each.
  Column<uint32_t> digest_tensors;
  Column<Digest128> tensor_digests;
  ListingOf<Column> listing;

  // A rank that adds nothing.
  bool empty() const {
    return lists.empty() && object_sizes.empty() && digest_tensors.empty() && listing.empty();
  }
};
using LocalPart = PartOf<OwnColumn>;
using PartView = PartOf<ColumnView>;

// All columns of a part as references, those of its listing last.
auto columns_of_part(auto& part) {
  return std::tuple_cat(std::tie(part.lists, part.boxes, part.more, part.object_sizes,
                                 part.digest_tensors, part.tensor_digests),
                        columns_of_listing(part.listing));
}

inline PartView view_of(const LocalPart& part) {
  PartView view{part.rank, part.world_size, part.description_digest, {}, {}, {}, {}, {}, {}, {}};
  columns_of_part(view) = columns_of_part(part);
  return view;
}

struct LocalPlan {
  Description description;
  LocalPart part;
};

// Everything that the comments above promise, and check_catalog. At most limit sentences.
std::vector<std::string> description_findings(const Description& description, size_t limit);
// What can be said of a part alone, and, with its description, counts and boxes against that; the
// digest is the caller's. description may be null.
std::vector<std::string> part_findings(const PartView& part, const Description* description,
                                       size_t limit);

}  // namespace shardwright::plan
