// SPDX-License-Identifier: Apache-2.0
#include "core/plan/save/write_items.h"

#include <algorithm>

#include "core/plan/box_bytes.h"
#include "core/plan/box_list_internal.h"

namespace shardwright::plan {
namespace {

class RankItems {
 public:
  RankItems(const RankView& rank, std::span<const uint64_t> kept)
      : rank_(rank),
        description_(rank.description),
        kept_(kept),
        tensors_(static_cast<uint32_t>(description_.forms.size())),
        objects_(static_cast<uint32_t>(description_.catalog.objects.size())) {}

  std::vector<WriteItem> run(std::span<const uint32_t> order) {
    for (uint32_t i = 0; i < tensors_ + objects_; ++i) {
      const uint32_t entry = order.empty() ? i : order[i];
      if (entry >= tensors_) {
        add_object(entry - tensors_);
      } else if (description_.forms[entry] == kBoxes) {
        add_boxes(entry);
      } else {
        add_ruled(entry);
      }
    }
    return std::move(items_);
  }

 private:
  bool is_kept(uint64_t bit) const { return (kept_[bit / 64] >> bit % 64 & 1) != 0; }

  void add(uint32_t tensor, uint32_t piece, const Box& box) {
    items_.push_back({tensor, piece, box_bytes(description_.catalog.tensors[tensor].dtype, box)});
  }

  void add_ruled(uint32_t tensor) {
    if (!is_kept(tensor)) return;
    const Box box = rank_.box_of(rank_.tensor_item(tensor));
    if (!box_is_empty(box)) add(tensor, 0, box);
  }

  // Boxes of a tensor stand row-major in the catalog.
  void add_boxes(uint32_t tensor) {
    const BoxList& list = rank_.list(tensor);
    boxes_.clear();
    for (uint32_t b = 0; b < list.count; ++b) {
      if (!is_kept(uint64_t{tensors_} + objects_ + list.begin + b)) continue;
      boxes_.emplace_back(
          internal::list_box(rank_.part, list, b, description_.catalog.shape(tensor)),
          rank_.part.boxes[list.begin + b].place);
    }
    if (!std::ranges::is_sorted(boxes_)) std::ranges::sort(boxes_);
    for (const auto& [box, piece] : boxes_) add(tensor, piece, box);
  }

  void add_object(uint32_t object) {
    if (!is_kept(uint64_t{tensors_} + object)) return;
    items_.push_back({object, kObjectPiece, rank_.object_bytes(object)});
  }

  const RankView& rank_;
  const Description& description_;
  std::span<const uint64_t> kept_;
  const uint32_t tensors_;
  const uint32_t objects_;
  std::vector<WriteItem> items_;
  std::vector<std::pair<Box, uint32_t>> boxes_;  // of the tensor at hand, with their pieces
};

}  // namespace

std::vector<WriteItem> write_items(const RankView& rank, std::span<const uint64_t> kept,
                                   std::span<const uint32_t> order) {
  return RankItems(rank, kept).run(order);
}

}  // namespace shardwright::plan
