// SPDX-License-Identifier: Apache-2.0
//
// DescriptionBuilder: describes what one rank holds entry by entry, in its order. What the layout
// says about this rank is compared with the rule that the description keeps; a tensor for which
// they differ is described by its boxes. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash_index.h"
#include "core/base/limits.h"
#include "core/layout/layout.h"
#include "core/plan/local_plan.h"
#include "core/plan/plan_options.h"

namespace shardwright::plan {

class DescriptionBuilder {
 public:
  // agreement: the text that all ranks must have alike. World size 0: not known, then there are no
  // layouts. INVALID_ARGUMENT for a position outside 1 to kMaxWorldSize ranks, and an agreement
  // that is not UTF-8.
  static Result<DescriptionBuilder> create(std::vector<KindPattern> kinds, std::string agreement,
                                           RankPosition position);

  struct Tensor {
    std::string_view name;
    std::string_view path;
    DType dtype = DType::kInvalid;
    // kAuto: a kind pattern's, else replicated when it is whole on all ranks, else sharded.
    EntryKind kind = EntryKind::kAuto;
    std::span<const int64_t> shape;
    Digest128 digest{};  // content digest for verify_replicas, zero = none
  };
  // The failures of CatalogBuilder::add_tensor, ALREADY_EXISTS for a name that is there, and
  // INVALID_ARGUMENT for a replicated or rank_local tensor that this rank does not hold all of. The
  // description is as before then.
  Status add_whole(const Tensor& tensor);
  Status add_sharded(const Tensor& tensor, const Layout& layout);
  Status add_boxes(const Tensor& tensor, std::span<const Box> boxes);
  // The boxes as they stand, empty ones too, whatever the kind. pieces: the number of each.
  Status add_listed(const Tensor& tensor, std::span<const Box> boxes,
                    std::span<const uint32_t> pieces);
  // The pieces of a state, in its order, and the layout that it says they follow, or null.
  Status add_pieces(const Tensor& tensor, const PieceList& pieces, const Layout* layout);

  // Objects of others' files may be larger than ours.
  struct Object {
    std::string_view name;
    std::string_view path;
    std::string_view content_type;
    EntryKind kind = EntryKind::kAuto;
    uint64_t size_bytes = 0;
    Digest128 digest{};
    uint64_t max_bytes = kMaxObjectBytes;
  };
  Status add_object(const Object& object);

  // Ends the description; the builder is empty then.
  Result<LocalPlan> finish();

 private:
  DescriptionBuilder(std::vector<KindPattern> kinds, std::string agreement, RankPosition position);
  // Positions in the index of names: twice that of a tensor, twice that of an object and one more.
  std::string_view name_at(size_t position) const;
  Status check_name(std::string_view name) const;
  void index_name(std::string_view name, size_t position);
  Status append(const Tensor& tensor, EntryKind kind, uint32_t form);
  Status append_boxes(const Tensor& tensor, EntryKind kind, std::span<const Box> boxes);
  void add_list(std::span<const int64_t> shape, std::span<const CatalogBuilder::Chunk> boxes);
  // Boxes that the layout gives to this rank, unless it is mistaken.
  Status add_ruled(const Tensor& tensor, const Layout& layout, std::span<const Box> boxes);
  // Cuts of the layout for tensors of that many dimensions; those of the last layout stay at hand.
  Result<const std::optional<std::vector<ShardAxis>>*> axes_for(const Layout& layout,
                                                                size_t dimension_count);
  uint32_t form_of(std::span<const ShardAxis> axes);

  std::vector<KindPattern> kinds_;
  RankPosition position_;
  Description description_;
  LocalPart part_;
  HashIndex layout_index_;
  HashIndex name_index_;
  struct Known {
    const Layout* layout;
    size_t dimension_count;
    std::optional<std::vector<ShardAxis>> axes;
  };
  std::vector<Known> known_;
};

}  // namespace shardwright::plan
