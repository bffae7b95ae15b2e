// SPDX-License-Identifier: Apache-2.0
//
// A write list comes from another rank; before anything is written it must fit the state at hand.
#include "core/plan/save/write_list_check.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {
namespace {

Status other_state(const WriteList& list, std::string what) {
  return failed_precondition(
             fmt::format("the write list of rank {} is that of another state: {}", list.rank, what))
      .with_detail("rank", std::to_string(list.rank));
}

Status check_object_item(const WriteList& list, const WriteItem& item, const State& state) {
  if (item.entry >= state.objects().size()) {
    return other_state(list, fmt::format("object {} of {}", item.entry, state.objects().size()));
  }
  const ObjectEntry& entry = state.objects()[item.entry];
  if (entry.bytes.size() != item.size_bytes) {
    return other_state(
        list, fmt::format("object '{}' has {} bytes, the list says {}", escape_text(entry.name),
                          entry.bytes.size(), item.size_bytes));
  }
  return {};
}

Status check_tensor_item(const WriteList& list, const WriteItem& item, const State& state) {
  if (item.entry >= state.tensors().size()) {
    return other_state(list, fmt::format("tensor {} of {}", item.entry, state.tensors().size()));
  }
  const TensorRef entry = state.tensors()[item.entry];
  if (item.piece >= entry.pieces.size()) {
    return other_state(list, fmt::format("piece {} of {} of tensor '{}'", item.piece,
                                         entry.pieces.size(), escape_text(entry.name)));
  }
  SHW_ASSIGN_OR_RETURN(
      const uint64_t bytes,
      dtype_packed_bytes(entry.local.dtype, element_count_of(entry.pieces.sizes(item.piece))));
  if (bytes != item.size_bytes) {
    return other_state(
        list, fmt::format("piece {} of tensor '{}' has {} bytes, the list says {}", item.piece,
                          escape_text(entry.name), bytes, item.size_bytes));
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

}  // namespace shardwright::plan
