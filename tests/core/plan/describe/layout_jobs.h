// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary of the tests of global plans: jobs described entry by entry, once for each rank
// by a DescriptionBuilder, and the explicit plan of the same job beside the one by layouts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/describe/builder.h"
#include "core/plan/options_text.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {

inline std::shared_ptr<const Layout> layout_of(Mesh mesh, std::vector<Placement> placements) {
  Result<std::shared_ptr<const Layout>> layout =
      Layout::create(std::move(mesh), std::move(placements));
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  return layout.ok() ? *layout : nullptr;
}

inline Placement shard(int32_t dim) {
  return {PlacementKind::kShard, dim, 0};
}
inline Placement replicate() {
  return {PlacementKind::kReplicate, 0, 0};
}

// One entry of a rank's state.
struct JobEntry {
  enum class Form { kWhole, kLayout, kBoxes, kObject };
  std::string name;
  Form form = Form::kWhole;
  DType dtype = DType::kFloat32;
  EntryKind kind = EntryKind::kAuto;
  Dims shape;
  std::shared_ptr<const Layout> layout;
  std::vector<Box> boxes;
  uint64_t object_bytes = 0;
  std::string content_type = "application/octet-stream";
  std::string path;
  Digest128 digest{};
};

inline JobEntry sharded(std::string name, Dims shape, std::shared_ptr<const Layout> layout) {
  JobEntry entry;
  entry.name = std::move(name);
  entry.form = JobEntry::Form::kLayout;
  entry.kind = EntryKind::kSharded;
  entry.shape = std::move(shape);
  entry.layout = std::move(layout);
  return entry;
}

// What each rank of a job holds.
using Job = std::function<std::vector<JobEntry>(int32_t rank)>;

inline Status add_entry(const JobEntry& entry, DescriptionBuilder* builder) {
  if (entry.form == JobEntry::Form::kObject) {
    return builder->add_object(
        {entry.name, entry.path, entry.content_type, entry.kind, entry.object_bytes, entry.digest});
  }
  const DescriptionBuilder::Tensor tensor{entry.name, entry.path,  entry.dtype,
                                          entry.kind, entry.shape, entry.digest};
  if (entry.form == JobEntry::Form::kLayout) return builder->add_sharded(tensor, *entry.layout);
  if (entry.form == JobEntry::Form::kBoxes) return builder->add_boxes(tensor, entry.boxes);
  return builder->add_whole(tensor);
}

inline Result<LocalPlan> describe(const std::vector<JobEntry>& entries, RankPosition position,
                                  const SaveRules& rules = {}) {
  SHW_ASSIGN_OR_RETURN(DescriptionBuilder builder,
                       DescriptionBuilder::create(rules.kinds, save_rules_text(rules), position));
  for (const JobEntry& entry : entries) SHW_RETURN_IF_ERROR(add_entry(entry, &builder));
  return builder.finish();
}

inline Result<RankPlans> world_of(const Job& job, int32_t ranks, const SaveRules& rules = {}) {
  std::vector<LocalPlan> locals;
  for (int32_t r = 0; r < ranks; ++r) {
    SHW_ASSIGN_OR_RETURN(LocalPlan local, describe(job(r), {r, ranks}, rules));
    locals.push_back(std::move(local));
  }
  return gather(locals);
}

// The plan of a world that is described by layouts and boxes.
inline Result<PlannedSave> global_plan(const RankPlans& world, const SaveRules& rules) {
  return plan_listed(world, rules);
}

inline Result<PlannedSave> global_plan(const Job& job, int32_t ranks, const SaveRules& rules = {}) {
  SHW_ASSIGN_OR_RETURN(const RankPlans world, world_of(job, ranks, rules));
  return global_plan(world, rules);
}

// The plan of the same world, described box by box.
inline Result<PlannedSave> explicit_plan(const RankPlans& world, const SaveRules& rules) {
  SHW_ASSIGN_OR_RETURN(const RankPlans listed, listed_ranks(world));
  return plan_listed(listed, rules);
}

// Plans the job both ways.
inline void expect_layouts_equal_boxes(const Job& job, int32_t ranks, const SaveRules& rules = {}) {
  const Result<RankPlans> world = world_of(job, ranks, rules);
  ASSERT_TRUE(world.ok()) << world.status().to_string();
  const Result<PlannedSave> expected = explicit_plan(*world, rules);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  const Result<PlannedSave> plan = global_plan(*world, rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  expect_equal_plans(*plan, *expected);
}

}  // namespace shardwright::plan::test
