// SPDX-License-Identifier: Apache-2.0
//
// megatron.h: shards of grids, flat ranges, the flattened entries that Megatron Core made of them,
// and its choice of writers; and the list of extensions.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/struct_reader.h"
#include "capi/box_list.h"
#include "capi/extensions.h"
#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/layout/grid.h"
#include "core/plan/save/greedy.h"
#include "shardwright/megatron.h"

namespace shardwright::capi {
namespace {

Status check_dimensions(const shw_grid_shard& shard) {
  // Written as a difference, because a sum may overflow.
  if (shard.local_ndim >= 0 && shard.prepended >= 0 && shard.local_ndim <= kMaxTensorRank &&
      shard.prepended <= kMaxTensorRank - shard.local_ndim) {
    return {};
  }
  return bad_argument("local_ndim", fmt::format("{} local and {} prepended axes are not 0 to {}",
                                                shard.local_ndim, shard.prepended, kMaxTensorRank));
}

Result<Dims> read_dims(const int64_t* values, int32_t count, const char* parameter) {
  SHW_ASSIGN_OR_RETURN(const auto list,
                       list_argument(values, static_cast<uint64_t>(count), parameter));
  return Dims(list);
}

Result<GridShard> read_shard(const shw_grid_shard* from) {
  shw_grid_shard copy;
  SHW_RETURN_IF_ERROR(read_struct(from, "shard", &copy));
  SHW_RETURN_IF_ERROR(check_dimensions(copy));
  const int32_t axes = copy.prepended + copy.local_ndim;
  GridShard shard;
  SHW_ASSIGN_OR_RETURN(shard.local_shape,
                       read_dims(copy.local_shape, copy.local_ndim, "local_shape"));
  SHW_ASSIGN_OR_RETURN(shard.global_shape, read_dims(copy.global_shape, axes, "global_shape"));
  SHW_ASSIGN_OR_RETURN(shard.offsets, read_dims(copy.offsets, axes, "offsets"));
  if (copy.fragments != nullptr) {
    SHW_ASSIGN_OR_RETURN(shard.fragments, read_dims(copy.fragments, axes, "fragments"));
  }
  shard.prepended = copy.prepended;
  shard.shape_may_differ = (copy.flags & SHW_GRID_SHAPE_MAY_DIFFER) != 0;
  if ((copy.flags & SHW_GRID_FLAT) != 0) shard.flat_range = {copy.flat_begin, copy.flat_size};
  return shard;
}

Result<std::vector<RankOffset>> read_places(const int64_t* places, uint64_t count) {
  if (count > INT64_MAX / 3) return bad_argument("count", "the list is too long");
  SHW_ASSIGN_OR_RETURN(const auto values, list_argument(places, 3 * count, "places"));
  std::vector<RankOffset> list;
  for (size_t i = 0; i < values.size(); i += 3) {
    RankOffset place{0, values[i + 1], values[i + 2]};
    if (!checked_cast(values[i], &place.axis)) {
      return bad_argument("places", fmt::format("there is no axis {}", values[i]));
    }
    list.push_back(place);
  }
  return list;
}

void copy_to(const Dims& values, int64_t* out) {
  if (out != nullptr) std::ranges::copy(values, out);
}

Result<plan::GreedyShards> read_shards(uint64_t count, const uint64_t* weights,
                                       const uint32_t* sets, const shw_bool* secondary) {
  plan::GreedyShards shards;
  SHW_ASSIGN_OR_RETURN(shards.weights, list_argument(weights, count, "weights"));
  SHW_ASSIGN_OR_RETURN(shards.sets, list_argument(sets, count, "sets"));
  if (secondary != nullptr) {
    SHW_ASSIGN_OR_RETURN(shards.secondary, list_argument(secondary, count, "secondary"));
  }
  return shards;
}

Status read_sets(uint64_t set_count, const uint64_t* set_offsets, const int32_t* holders,
                 plan::GreedyShards* shards) {
  if (set_count == 0) return {};
  if (set_count > INT64_MAX / 16) return bad_argument("set_count", "there are too many sets");
  SHW_RETURN_IF_ERROR(need_pointer(set_offsets, "set_offsets"));
  shards->set_offsets = {set_offsets, set_count + 1};
  SHW_ASSIGN_OR_RETURN(shards->holders, list_argument(holders, set_offsets[set_count], "holders"));
  return {};
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace plan = shardwright::plan;
using shardwright::Status;

extern "C" {

static void grid_shard_init(shw_grid_shard* shard, uint32_t struct_size) noexcept {
  capi::init_struct(shard, struct_size);
}

static shw_status grid_place(const shw_grid_shard* shard, const int64_t* places, uint64_t count,
                             int64_t* global_shape, int64_t* offsets, int64_t* fragments,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    shw_grid_shard copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(shard, "shard", &copy));
    SHW_RETURN_IF_ERROR(capi::check_dimensions(copy));
    SHW_ASSIGN_OR_RETURN(auto local,
                         capi::read_dims(copy.local_shape, copy.local_ndim, "local_shape"));
    SHW_ASSIGN_OR_RETURN(const auto list, capi::read_places(places, count));
    SHW_ASSIGN_OR_RETURN(const auto placed,
                         shardwright::grid_shard_at(std::move(local), copy.prepended, list));
    capi::copy_to(placed.global_shape, global_shape);
    capi::copy_to(placed.offsets, offsets);
    capi::copy_to(*placed.fragments, fragments);
    return {};
  });
}

static shw_status grid_boxes(const shw_grid_shard* shard, int64_t* boxes, uint64_t capacity,
                             uint64_t* size, int64_t* local_offsets, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    SHW_ASSIGN_OR_RETURN(const auto read, capi::read_shard(shard));
    SHW_ASSIGN_OR_RETURN(const auto pieces, shardwright::grid_pieces(read));
    return capi::write_boxes(pieces, {"boxes", boxes, capacity, size, local_offsets}, answer);
  });
}

static shw_status grid_flat_entry(const shw_grid_shard* shard, int64_t* shape, int64_t* offsets,
                                  int64_t* sizes, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(shape, "shape"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(offsets, "offsets"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(sizes, "sizes"));
    SHW_ASSIGN_OR_RETURN(const auto read, capi::read_shard(shard));
    SHW_ASSIGN_OR_RETURN(const auto entry, shardwright::flat_entry_of(read));
    capi::copy_to(entry.shape, shape);
    capi::copy_to(entry.box.offsets, offsets);
    capi::copy_to(entry.box.sizes, sizes);
    return {};
  });
}

static shw_status grid_flat_boxes(const int64_t* shape, int32_t ndim, const int64_t* entry,
                                  const int64_t* chunk, int64_t* boxes, uint64_t capacity,
                                  uint64_t* size, int64_t* local_offsets,
                                  shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(entry, "entry"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(chunk, "chunk"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    if (ndim < 0 || ndim >= shardwright::kMaxTensorRank) {
      return capi::bad_argument(
          "ndim", fmt::format("{} is not between 0 and {}", ndim, shardwright::kMaxTensorRank - 1));
    }
    const auto axes = static_cast<size_t>(ndim) + 1;
    SHW_ASSIGN_OR_RETURN(const auto original, capi::list_argument(shape, axes - 1, "shape"));
    const shardwright::Box box{shardwright::Dims(std::span(chunk, axes)),
                               shardwright::Dims(std::span(chunk + axes, axes))};
    SHW_ASSIGN_OR_RETURN(const auto pieces,
                         shardwright::flat_entry_pieces(original, std::span(entry, axes), box));
    return capi::write_boxes(pieces, {"boxes", boxes, capacity, size, local_offsets}, answer);
  });
}

static shw_status grid_overlap(int64_t stored, int64_t wanted, int64_t index, int64_t* begin,
                               int64_t* count, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(begin, "begin"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(count, "count"));
    if (stored < 1 || wanted < 1 || index < 0 || index >= wanted) {
      return capi::bad_argument(
          "index", fmt::format("part {} of {} wanted and {} stored ones", index, wanted, stored));
    }
    const auto parts = shardwright::overlapping_parts(stored, wanted, index);
    *begin = parts.begin;
    *count = parts.size;
    return {};
  });
}

static shw_status plan_owners(uint64_t count, const uint64_t* weights, const uint32_t* sets,
                              const shw_bool* secondary, uint64_t set_count,
                              const uint64_t* set_offsets, const int32_t* holders,
                              int32_t rank_count, int32_t* owners, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(auto shards, capi::read_shards(count, weights, sets, secondary));
    SHW_RETURN_IF_ERROR(capi::read_sets(set_count, set_offsets, holders, &shards));
    if (count != 0) SHW_RETURN_IF_ERROR(capi::need_pointer(owners, "owners"));
    shards.rank_count = rank_count;
    SHW_ASSIGN_OR_RETURN(const auto chosen, plan::choose_greedily(shards));
    std::copy(chosen.begin(), chosen.end(), owners);
    return {};
  });
}

}  // extern "C"

namespace shardwright::capi {
namespace {

constexpr shw_megatron_api kMegatron = {
    sizeof(shw_megatron_api), SHW_MEGATRON_VERSION, grid_shard_init, grid_place, grid_boxes,
    grid_flat_entry,          grid_flat_boxes,      grid_overlap,    plan_owners};

}  // namespace

constexpr shw_extension kExtensions = {sizeof(shw_extension), SHW_MEGATRON_VERSION,
                                       SHW_MEGATRON_NAME, &kMegatron, nullptr};

}  // namespace shardwright::capi
