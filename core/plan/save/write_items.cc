// SPDX-License-Identifier: Apache-2.0
//
// A write list comes from another rank; before anything is written it must fit the state at hand.
#include "core/plan/save/write_items.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/layout/box_bytes.h"

namespace shardwright::plan {
namespace {

template <typename... Arguments>
Status other_state(const WriteList& list, fmt::format_string<Arguments...> format,
                   Arguments&&... arguments) {
  return failed_precondition(
             fmt::format("the write list of rank {} is that of another state: {}", list.rank,
                         fmt::format(format, std::forward<Arguments>(arguments)...)))
      .with_detail("rank", std::to_string(list.rank));
}

Status check_object_item(const WriteList& list, const WriteItem& item, const State& state) {
  if (item.entry >= state.objects().size()) {
    return other_state(list, "object {} of {}", item.entry, state.objects().size());
  }
  const ObjectEntry& entry = state.objects()[item.entry];
  if (entry.size_bytes() != item.size_bytes) {
    return other_state(list, "object '{}' has {} bytes, the list says {}", escape_text(entry.name),
                       entry.size_bytes(), item.size_bytes);
  }
  return {};
}

Status check_tensor_item(const WriteList& list, const WriteItem& item, const State& state) {
  if (item.entry >= state.tensors().size()) {
    return other_state(list, "tensor {} of {}", item.entry, state.tensors().size());
  }
  const TensorRef entry = state.tensors()[item.entry];
  if (item.piece >= entry.pieces.size()) {
    return other_state(list, "piece {} of {} of tensor '{}'", item.piece, entry.pieces.size(),
                       escape_text(entry.name));
  }
  SHW_ASSIGN_OR_RETURN(
      const uint64_t bytes,
      dtype_packed_bytes(entry.local.dtype, element_count_of(entry.pieces.sizes(item.piece))));
  if (bytes != item.size_bytes) {
    return other_state(list, "piece {} of tensor '{}' has {} bytes, the list says {}", item.piece,
                       escape_text(entry.name), bytes, item.size_bytes);
  }
  return {};
}

}  // namespace

Status check_write_list(const WriteList& list, const State& state, RankPosition position) {
  if (list.rank != position.rank || list.world_size != position.world_size) {
    return failed_precondition(fmt::format("the write list of rank {} of {} came to rank {} of {}",
                                           list.rank, list.world_size, position.rank,
                                           position.world_size))
        .with_detail("rank", std::to_string(position.rank));
  }
  std::vector<uint64_t> keys;  // entry and piece of every item
  keys.reserve(list.items.size());
  for (const WriteItem& item : list.items) {
    SHW_RETURN_IF_ERROR(item.piece == kObjectPiece ? check_object_item(list, item, state)
                                                   : check_tensor_item(list, item, state));
    keys.push_back(uint64_t{item.entry} << 32 | item.piece);
  }
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
    return other_state(list, "an item is listed twice");
  return {};
}

std::vector<WriteItem> write_items(const RankView& rank, std::span<const uint64_t> kept,
                                   std::span<const uint32_t> order) {
  const Description& description = rank.description;
  const auto tensors = static_cast<uint32_t>(description.forms.size());
  const auto entries = tensors + static_cast<uint32_t>(description.catalog.objects.size());
  const auto is_kept = [kept](uint64_t bit) { return (kept[bit / 64] >> bit % 64 & 1) != 0; };
  std::vector<WriteItem> items;
  std::vector<uint32_t> held;  // numbers of the boxes of the tensor at hand
  for (uint32_t i = 0; i < entries; ++i) {
    const uint32_t entry = order.empty() ? i : order[i];
    if (entry >= tensors) {
      const uint32_t object = entry - tensors;
      if (is_kept(entry)) items.push_back({object, kObjectPiece, rank.object_bytes(object)});
      continue;
    }
    const DType dtype = description.catalog.tensors[entry].dtype;
    if (description.forms[entry] != kBoxes) {
      const uint64_t bytes =
          is_kept(entry) ? box_bytes(dtype, rank.box_of(rank.tensor_item(entry))) : 0;
      if (bytes != 0) items.push_back({entry, 0, bytes});
      continue;
    }
    const BoxList& list = rank.list(entry);
    held.clear();
    for (uint32_t box = list.begin; box < list.begin + list.count; ++box) {
      if (is_kept(uint64_t{entries} + box)) held.push_back(box);
    }
    // Boxes of a tensor stand row-major in the catalog.
    const auto row_major = [&](uint32_t one, uint32_t other) {
      return std::pair(rank.box_of(one), rank.part.boxes[one].place) <
             std::pair(rank.box_of(other), rank.part.boxes[other].place);
    };
    if (!std::ranges::is_sorted(held, row_major)) std::ranges::sort(held, row_major);
    for (const uint32_t box : held)
      items.push_back({entry, rank.part.boxes[box].place, box_bytes(dtype, rank.box_of(box))});
  }
  return items;
}

}  // namespace shardwright::plan
