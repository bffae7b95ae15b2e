// SPDX-License-Identifier: Apache-2.0
//
// Merging of plan buffers by the core, for shardwright_merge.py: `ranks` ranks describe `items`
// tensors each: every second one replicated on all, or none; the others cut into rows of 8 x 8
// elements, of which each rank has `boxes`.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plan/describe/describe_entries.h"
#include "core/plan/entry_arrays.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/merge_plans.h"
#include "core/plan/wire/wire.h"
#include "core/tensor/dtype.h"

namespace {

namespace plan = shardwright::plan;

constexpr auto kFloat32 = static_cast<int32_t>(shardwright::DType::kFloat32);
constexpr int64_t kRows = 8;
constexpr char kGeneration[] = "0123456789abcdef0123456789abcdef";

struct Bench {
  int64_t ranks = 0;
  int64_t items = 0;
  int64_t boxes = 1;
  bool all_cut = false;
  std::vector<std::byte> blob;
  std::vector<std::span<const std::byte>> plans;
  plan::LocalPlan first;
};

// Arrays of one rank; only the offsets of its boxes differ from rank to rank.
struct Rank {
  std::vector<char> names;
  std::vector<uint64_t> name_offsets = {0}, shape_offsets = {0}, ranges = {0};
  std::vector<int32_t> dtypes;
  std::vector<int64_t> shapes, offsets, sizes;

  plan::EntryArrays arrays() const {
    plan::EntryArrays made;
    made.count = dtypes.size();
    made.names = {names, name_offsets};
    made.dtypes = dtypes;
    made.shapes = shapes.data();
    made.shape_offsets = shape_offsets;
    made.box_ranges = ranges;
    made.box_offsets = offsets.data();
    made.box_sizes = sizes.data();
    return made;
  }
};

bool is_cut(const Bench& bench, int64_t item) {
  return bench.all_cut || item % 2 == 0;
}

Rank rank_of(const Bench& bench) {
  Rank made;
  for (int64_t i = 0; i < bench.items; ++i) {
    const std::string name = "model.layers." + std::to_string(i) + ".attention.weight";
    made.names.insert(made.names.end(), name.begin(), name.end());
    made.name_offsets.push_back(made.names.size());
    made.dtypes.push_back(kFloat32);
    const int64_t boxes = is_cut(bench, i) ? bench.boxes : 1;
    const int64_t rows = is_cut(bench, i) ? kRows * bench.ranks * boxes : kRows;
    made.shapes.insert(made.shapes.end(), {rows, kRows});
    made.shape_offsets.push_back(made.shapes.size());
    for (int64_t b = 0; b < boxes; ++b) {
      made.offsets.insert(made.offsets.end(), {0, 0});
      made.sizes.insert(made.sizes.end(), {kRows, kRows});
    }
    made.ranges.push_back(made.ranges.back() + static_cast<uint64_t>(boxes));
  }
  return made;
}

// Moves the boxes of cut tensors to where the rank's are.
void place_boxes(const Bench& bench, int64_t rank, Rank* arrays) {
  for (int64_t i = 0; i < bench.items; ++i) {
    if (!is_cut(bench, i)) continue;
    const uint64_t first = arrays->ranges[static_cast<size_t>(i)];
    for (int64_t b = 0; b < bench.boxes; ++b)
      arrays->offsets[2 * (first + static_cast<uint64_t>(b))] = kRows * (rank * bench.boxes + b);
  }
}

bool fill(Bench* bench) {
  Rank arrays = rank_of(*bench);
  std::vector<size_t> ends;
  for (int64_t r = 0; r < bench->ranks; ++r) {
    place_boxes(*bench, r, &arrays);
    plan::DescribeRules rules;
    rules.rank = static_cast<int32_t>(r);
    rules.world_size = static_cast<int32_t>(bench->ranks);
    auto local = plan::describe_local(arrays.arrays(), rules);
    if (!local.ok()) return false;
    const auto bytes = plan::encode(*local);
    if (!bytes.ok()) return false;
    if (r == 0) {
      bench->blob.reserve((bytes->size() + 64) * static_cast<size_t>(bench->ranks));
      bench->first = std::move(*local);
    }
    bench->blob.insert(bench->blob.end(), bytes->begin(), bytes->end());
    ends.push_back(bench->blob.size());
  }
  size_t begin = 0;
  for (const size_t end : ends) {
    bench->plans.push_back(std::span(bench->blob).subspan(begin, end - begin));
    begin = end;
  }
  return true;
}

plan::MergeRules rules_of(int32_t preset, int32_t owner) {
  plan::MergeRules rules;
  rules.preset = static_cast<plan::Preset>(preset);
  rules.owner = static_cast<plan::OwnerRule>(owner);
  return rules;
}

}  // namespace

extern "C" {

#define BENCH_API __attribute__((visibility("default")))

BENCH_API void* bench_save_create(int64_t ranks, int64_t items, int64_t boxes, int32_t all_cut) {
  auto bench = std::make_unique<Bench>();
  bench->ranks = ranks;
  bench->items = items;
  bench->boxes = boxes;
  bench->all_cut = all_cut != 0;
  return fill(bench.get()) ? bench.release() : nullptr;
}

// Bytes of the plans of all ranks.
BENCH_API int64_t bench_save_bytes(void* handle) {
  return static_cast<int64_t>(static_cast<Bench*>(handle)->blob.size());
}

// Merged plan and what ranks keep; the number of their bytes, 0 for a failure.
BENCH_API int64_t bench_save_merge(void* handle, int32_t preset, int32_t owner) {
  auto* bench = static_cast<Bench*>(handle);
  const auto parts = plan::merge_plans(bench->plans, rules_of(preset, owner));
  return parts.ok() ? static_cast<int64_t>(parts->offsets().back()) : 0;
}

// The native global plan with the write lists of all ranks; the number of items written.
BENCH_API int64_t bench_save_global_plan(void* handle) {
  auto* bench = static_cast<Bench*>(handle);
  const auto ranks = plan::open_local_saves(bench->plans);
  if (!ranks.ok()) return 0;
  const auto merged = plan::make_global_plan(*ranks, {});
  if (!merged.ok()) return 0;
  size_t items = 0;
  for (uint32_t r = 0; r < ranks->rank_count(); ++r) {
    items += merged->writes.item_counts[r];
    if (!plan::encode(plan::write_list_of(*merged, ranks->of(r))).ok()) return 0;
  }
  return static_cast<int64_t>(items);
}

// Every box is kept by exactly one rank, and the merged plan passes its own checks.
BENCH_API int32_t bench_save_check(void* handle, int32_t preset, int32_t owner) {
  auto* bench = static_cast<Bench*>(handle);
  const auto parts = plan::merge_plans(bench->plans, rules_of(preset, owner));
  if (!parts.ok()) return 0;
  const auto merged = plan::decode<plan::GlobalSavePlan>(parts->part(0));
  if (!merged.ok() || !plan::prove_all_covers(merged->catalog).ok()) return 0;
  size_t kept = 0;
  for (size_t r = 0; r < bench->plans.size(); ++r) {
    const std::span<const uint32_t> mine = parts->numbers(1 + r);
    kept += mine.size() - static_cast<size_t>(std::ranges::count(mine, plan::kNotKept));
  }
  return kept == merged->catalog.chunk_count() ? 1 : 0;
}

// Opening of the plans of all ranks: structure and meaning.
BENCH_API int64_t bench_save_open(void* handle) {
  const auto ranks = plan::open_local_saves(static_cast<Bench*>(handle)->plans);
  return ranks.ok() ? static_cast<int64_t>(ranks->rank_count()) : 0;
}

// One rank's plan.
BENCH_API int64_t bench_save_encode(void* handle) {
  auto* bench = static_cast<Bench*>(handle);
  const auto bytes = plan::encode(bench->first);
  return bytes.ok() ? static_cast<int64_t>(bytes->size()) : 0;
}

BENCH_API void bench_save_release(void* handle) {
  delete static_cast<Bench*>(handle);
}

}  // extern "C"
