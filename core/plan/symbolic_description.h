// SPDX-License-Identifier: Apache-2.0
//
// SymbolicDescription: what a rank holds, said so that ranks which differ only by their place in a
// mesh say the same. It names no rank; a tensor is whole, cut by a layout (a number into a table of
// distinct ones), absent, or a list of boxes that each rank gives itself. What only this rank knows
// is its SymbolicPart: those boxes, the sizes of its rank_local objects, and content digests of what
// it holds a part of. Ranks exchange the digest of the description, one representative of each
// distinct one, and parts where there are any.
// Values; thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/digest.h"
#include "core/plan/shard_axis.h"

namespace shardwright::plan {

// How a tensor of a description is held. From kFirstLayout on: layout number form - kFirstLayout.
enum SymbolicForm : uint32_t { kWhole = 0, kBoxes = 1, kNothing = 2, kFirstLayout = 3 };

struct SymbolicDescription {
  Digest128 options_digest{};  // of options_text
  std::string options_text;
  // Tensors without chunks and objects, in state order. Of rank_local entries the rank is 0 and
  // stands for each rank in turn; a rank_local tensor is whole or boxes, and the size of a
  // rank_local object is 0, for the part has it.
  Catalog catalog;
  std::vector<uint32_t> forms;            // one per tensor
  std::vector<ShardAxis> axes;            // of all layouts, back to back
  std::vector<uint32_t> layout_ends;      // end of each layout in axes
  std::vector<Digest128> tensor_digests;  // as in LocalSavePlan; only of tensors that are whole
  std::vector<Digest128> object_digests;

  std::span<const ShardAxis> layout(size_t number) const {
    const size_t begin = number == 0 ? 0 : layout_ends[number - 1];
    return {axes.data() + begin, layout_ends[number] - begin};
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

// What one rank adds to its description. Boxes are those that hold an element.
struct SymbolicPart {
  int32_t rank = 0;
  int32_t world_size = 1;
  Digest128 description_digest{};
  std::vector<BoxList> lists;          // one per tensor that is boxes, in order
  std::vector<ChunkRecord> boxes;      // place = piece of the entry, number 0
  std::vector<ExtentPair> more;        // third and further split dimensions, box after box
  std::vector<uint64_t> object_sizes;  // one per rank_local object, in order
  // Tensors that are not whole and have a content digest, ascending, and the digest of each.
  std::vector<uint32_t> digest_tensors;
  std::vector<Digest128> tensor_digests;
  bool empty() const { return lists.empty() && object_sizes.empty() && digest_tensors.empty(); }
};

// What a rank says about its state.
struct LocalSymbolicPlan {
  SymbolicDescription description;
  SymbolicPart part;  // its description_digest is set
};

// Everything that the comments above promise, and check_catalog. At most limit sentences.
std::vector<std::string> description_findings(const SymbolicDescription& description, size_t limit);
// Counts of the part against its description, boxes against shapes; the digest is the caller's.
std::vector<std::string> part_findings(const SymbolicDescription& description,
                                       const SymbolicPart& part, size_t limit);

}  // namespace shardwright::plan
