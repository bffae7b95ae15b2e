// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary of the planner's tests: states of several ranks described by boxes, without element
// values (planning never looks at them), and plans made from them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/plan/describe/replica_digests.h"
#include "core/plan/load_plan.h"
#include "core/plan/options_text.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/write_items.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"
#include "tests/core/plan/explicit_plan.h"
#include "tests/core/plan/read_list.h"
#include "tests/support/expect_failure.h"

namespace shardwright::plan::test {

inline constexpr char kGeneration[] = "0123456789abcdef0123456789abcdef";

inline Box box(Dims offsets, Dims sizes) {
  return {std::move(offsets), std::move(sizes)};
}

// What a rank holds of one tensor.
struct Holding {
  std::string name;
  DType dtype = DType::kFloat32;
  Dims shape;
  std::vector<Box> boxes;
  EntryKind kind = EntryKind::kSharded;
};

// Memory that stands for every tensor; it is never read or written.
inline std::byte* no_memory() {
  static std::array<std::byte, 64> bytes;
  return bytes.data();
}

inline TensorEntry entry_of(const Holding& holding) {
  TensorEntry entry;
  entry.name = holding.name;
  entry.kind = holding.kind;
  entry.global_shape = holding.shape;
  entry.local.data = no_memory();
  entry.local.dtype = holding.dtype;
  int64_t elements = 0;
  for (const Box& each : holding.boxes) {
    entry.pieces.push_back({each, elements});
    elements += box_element_count(each);
  }
  entry.local.shape = holding.boxes.size() == 1 ? holding.boxes[0].sizes : Dims{elements};
  return entry;
}

inline Holding whole(std::string name, Dims shape, EntryKind kind = EntryKind::kAuto) {
  Holding holding{std::move(name), DType::kFloat32, shape, {whole_box(shape)}, kind};
  return holding;
}

struct Bytes {
  std::string name;
  std::string text;
  EntryKind kind = EntryKind::kAuto;
};

inline ObjectEntry entry_of(const Bytes& object) {
  ObjectEntry entry;
  entry.name = object.name;
  entry.kind = object.kind;
  entry.content_type = "application/octet-stream";
  for (const char c : object.text) entry.bytes.push_back(static_cast<std::byte>(c));
  return entry;
}

inline State state_of(const std::vector<Holding>& holdings,
                      const std::vector<Bytes>& objects = {}) {
  State state;
  std::vector<TensorEntry> tensors;
  for (const Holding& each : holdings) tensors.push_back(entry_of(each));
  Status status = state.add_tensors(tensors);
  EXPECT_TRUE(status.ok()) << status.to_string();
  std::vector<ObjectEntry> entries;
  for (const Bytes& each : objects) entries.push_back(entry_of(each));
  status = state.add_objects(std::move(entries));
  EXPECT_TRUE(status.ok()) << status.to_string();
  return state;
}

// Local plans of all ranks, box by box; fails the test when one is refused.
inline std::vector<LocalPlan> local_plans(const std::vector<State>& states,
                                          const SaveRules& rules = {}) {
  std::vector<LocalPlan> plans;
  for (size_t r = 0; r < states.size(); ++r) {
    const RankPosition position{static_cast<int32_t>(r), static_cast<int32_t>(states.size())};
    Result<LocalPlan> plan = make_local_plan(states[r], rules, position, {});
    EXPECT_TRUE(plan.ok()) << plan.status().to_string();
    plans.push_back(plan.ok() ? *std::move(plan) : LocalPlan());
  }
  return plans;
}

// A plan with what each rank writes, item by item.
struct RankList {
  std::vector<WriteItem> items;
  uint64_t payload_bytes() const { return plan::payload_bytes(items); }
};
struct PlannedSave : GlobalSavePlan {
  std::vector<RankList> lists;
};

// What the plan says of each rank's bytes and items is what the rank makes of it.
inline Result<PlannedSave> plan_listed(const RankPlans& ranks, const SaveRules& rules) {
  PlannedSave made;
  SHW_ASSIGN_OR_RETURN(static_cast<GlobalSavePlan&>(made), make_global_plan(ranks, rules));
  made.generation = kGeneration;
  for (uint32_t r = 0; r < ranks.rank_count(); ++r) {
    const KeptItems& kept = made.writes.kept;
    made.lists.push_back({write_items(ranks.of(r), kept.bits(r), kept.order(r))});
    EXPECT_EQ(made.lists[r].items.size(), made.writes.item_counts[r]) << "rank " << r;
    EXPECT_EQ(made.lists[r].payload_bytes(), made.writes.bytes[r]) << "rank " << r;
  }
  return made;
}

inline Result<PlannedSave> plan_locals(std::span<const LocalPlan> locals, const SaveRules& rules) {
  SHW_ASSIGN_OR_RETURN(const RankPlans ranks, opened(locals));
  return plan_listed(ranks, rules);
}

// Catalog and digest.
inline std::vector<std::byte> bytes_of(const GlobalSavePlan& plan) {
  Result<std::vector<std::byte>> bytes = encode(plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *std::move(bytes) : std::vector<std::byte>();
}

inline void expect_equal_plans(const PlannedSave& plan, const PlannedSave& expected) {
  ASSERT_EQ(bytes_of(plan), bytes_of(expected));
  ASSERT_EQ(plan.lists.size(), expected.lists.size());
  for (size_t r = 0; r < expected.lists.size(); ++r)
    ASSERT_EQ(plan.lists[r].items, expected.lists[r].items) << "rank " << r;
}

// Plans what the states describe, and what they say box by box: both are equal.
inline Result<PlannedSave> plan_save(const std::vector<State>& states,
                                     const SaveRules& rules = {}) {
  std::vector<LocalPlan> locals;
  for (size_t r = 0; r < states.size(); ++r) {
    const RankPosition position{static_cast<int32_t>(r), static_cast<int32_t>(states.size())};
    SHW_ASSIGN_OR_RETURN(LocalPlan local,
                         describe_state(states[r], rules, position, {}, save_rules_text(rules)));
    locals.push_back(std::move(local));
  }
  Result<PlannedSave> plan = plan_locals(locals, rules);
  const Result<PlannedSave> expected = plan_locals(local_plans(states, rules), rules);
  EXPECT_EQ(plan.status().to_string(), expected.status().to_string());
  if (plan.ok() && expected.ok()) expect_equal_plans(*plan, *expected);
  return plan;
}

inline PlannedSave planned(const std::vector<State>& states, const SaveRules& rules = {}) {
  Result<PlannedSave> plan = plan_save(states, rules);
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  return plan.ok() ? *std::move(plan) : PlannedSave();
}

// Adds a stored tensor of one-byte elements in these chunks, each at the place of its number.
inline void add_stored(Catalog* catalog, std::string_view name, const Dims& shape,
                       const std::vector<Box>& boxes) {
  std::vector<CatalogBuilder::Chunk> chunks;
  for (const Box& each : boxes) chunks.push_back({each, static_cast<uint32_t>(chunks.size())});
  CatalogBuilder::Tensor tensor;
  tensor.name = name;
  tensor.dtype = DType::kInt8;
  tensor.kind = EntryKind::kSharded;
  tensor.shape = shape;
  const Status status = CatalogBuilder(catalog).add_tensor(tensor, chunks);
  EXPECT_TRUE(status.ok()) << status.to_string();
}

// One such tensor, `w`.
inline Catalog catalog_of(const Dims& shape, const std::vector<Box>& boxes) {
  Catalog catalog;
  add_stored(&catalog, "w", shape, boxes);
  return catalog;
}

}  // namespace shardwright::plan::test
