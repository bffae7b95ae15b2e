// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary of the tests of symbolic planning: jobs described entry by entry, once for each rank
// by a SymbolicBuilder, and the explicit plan of the same job beside the symbolic one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/save/global_plan.h"
#include "core/plan/symbolic/builder.h"
#include "core/plan/symbolic/symbolic_plan.h"
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

inline Status add_entry(const JobEntry& entry, SymbolicBuilder* builder) {
  if (entry.form == JobEntry::Form::kObject) {
    return builder->add_object(
        {entry.name, entry.path, entry.content_type, entry.kind, entry.object_bytes, entry.digest});
  }
  const SymbolicBuilder::Tensor tensor{entry.name, entry.path,  entry.dtype,
                                       entry.kind, entry.shape, entry.digest};
  if (entry.form == JobEntry::Form::kLayout) return builder->add_sharded(tensor, *entry.layout);
  if (entry.form == JobEntry::Form::kBoxes) return builder->add_boxes(tensor, entry.boxes);
  return builder->add_whole(tensor);
}

inline Result<LocalSymbolicPlan> describe(const std::vector<JobEntry>& entries,
                                          RankPosition position, const SaveRules& rules = {}) {
  SHW_ASSIGN_OR_RETURN(SymbolicBuilder builder, SymbolicBuilder::create(rules, position));
  for (const JobEntry& entry : entries) SHW_RETURN_IF_ERROR(add_entry(entry, &builder));
  return builder.finish();
}

// What ranks exchange: digests, the representatives' descriptions and parts, all through buffers.
inline Result<RankDescriptions> gather(const std::vector<LocalSymbolicPlan>& locals) {
  std::vector<Digest128> digests;
  for (const LocalSymbolicPlan& local : locals) digests.push_back(local.part.description_digest);
  std::vector<SymbolicDescription> descriptions;
  for (const int32_t rank : representative_ranks(digests)) {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                         encode(locals[static_cast<size_t>(rank)].description));
    SHW_ASSIGN_OR_RETURN(SymbolicDescription description, decode_symbolic_save(bytes));
    descriptions.push_back(std::move(description));
  }
  std::vector<SymbolicPart> parts;
  for (const LocalSymbolicPlan& local : locals) {
    if (local.part.empty()) continue;
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, encode(local.part));
    SHW_ASSIGN_OR_RETURN(SymbolicPart part, decode_symbolic_part(bytes));
    parts.push_back(std::move(part));
  }
  return make_rank_descriptions(digests, std::move(descriptions), std::move(parts));
}

inline Result<RankDescriptions> world_of(const Job& job, int32_t ranks,
                                         const SaveRules& rules = {}) {
  std::vector<LocalSymbolicPlan> locals;
  for (int32_t r = 0; r < ranks; ++r) {
    SHW_ASSIGN_OR_RETURN(LocalSymbolicPlan local, describe(job(r), {r, ranks}, rules));
    locals.push_back(std::move(local));
  }
  return gather(locals);
}

inline Result<SymbolicSavePlan> symbolic_plan(const Job& job, int32_t ranks,
                                              const SaveRules& rules = {}) {
  SHW_ASSIGN_OR_RETURN(RankDescriptions world, world_of(job, ranks, rules));
  return make_symbolic_plan(std::move(world), rules);
}

// The explicit plan of the same world.
inline Result<GlobalSavePlan> explicit_plan(const RankDescriptions& world, const SaveRules& rules) {
  std::vector<LocalSavePlan> locals;
  for (int32_t r = 0; r < world.rank_count(); ++r) {
    SHW_ASSIGN_OR_RETURN(LocalSavePlan local, expand_local_plan(world, r));
    locals.push_back(std::move(local));
  }
  return make_global_plan(locals, rules, kGeneration);
}

// Catalog and digest.
inline plan::Bytes bytes_of(const GlobalSavePlan& plan) {
  Result<plan::Bytes> bytes = encode(plan);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *std::move(bytes) : plan::Bytes();
}

inline bool same_items(const WriteList& a, const WriteList& b) {
  return a.rank == b.rank && a.world_size == b.world_size && a.generation == b.generation &&
         a.plan_digest == b.plan_digest &&
         std::ranges::equal(a.items, b.items, [](const WriteItem& x, const WriteItem& y) {
           return x.entry == y.entry && x.piece == y.piece && x.size_bytes == y.size_bytes;
         });
}

// Everything that the symbolic plan says against the explicit plan of the same world.
inline void expect_equal_plans(const SymbolicSavePlan& plan, const GlobalSavePlan& expected) {
  const Result<GlobalSavePlan> expanded = plan.expand(kGeneration);
  ASSERT_TRUE(expanded.ok()) << expanded.status().to_string();
  ASSERT_EQ(bytes_of(*expanded), bytes_of(expected));
  ASSERT_EQ(expanded->plan_digest, expected.plan_digest);
  ASSERT_EQ(expanded->lists.size(), expected.lists.size());
  uint64_t bytes = 0;
  std::vector<int32_t> writers;
  for (size_t r = 0; r < expected.lists.size(); ++r) {
    if (!expected.lists[r].items.empty()) writers.push_back(static_cast<int32_t>(r));
    ASSERT_TRUE(same_items(expanded->lists[r], expected.lists[r])) << "rank " << r;
    const Result<WriteList> list =
        plan.write_list(static_cast<int32_t>(r), {kGeneration, expected.plan_digest});
    ASSERT_TRUE(list.ok()) << list.status().to_string();
    ASSERT_TRUE(same_items(*list, expected.lists[r])) << "rank " << r;
    uint64_t of_rank = 0;
    for (const WriteItem& item : list->items) of_rank += item.size_bytes;
    ASSERT_EQ(plan.bytes_of_rank(static_cast<int32_t>(r)), of_rank);
    bytes += of_rank;
  }
  const SymbolicTotals totals = plan.totals();
  ASSERT_EQ(totals.bytes, bytes);
  ASSERT_EQ(totals.chunks, expected.catalog.chunk_count());
  ASSERT_EQ(totals.objects, expected.catalog.objects.size());
  ASSERT_EQ(totals.writers, writers.size());
  ASSERT_EQ(plan.writers(), writers);
}

// Owners of all shared tensors, chunk by chunk.
inline void expect_equal_owners(const SymbolicSavePlan& plan, const GlobalSavePlan& expected) {
  size_t shared = 0;
  for (const TensorRecord& tensor : expected.catalog.tensors) {
    if (tensor.rank >= 0) continue;
    ASSERT_EQ(plan.chunk_count(shared), tensor.chunk_count);
    for (uint64_t c = 0; c < tensor.chunk_count; ++c) {
      const Result<int32_t> owner = plan.owner(shared, c);
      ASSERT_TRUE(owner.ok());
      const uint32_t place = expected.catalog.place_of(tensor.chunk_begin + c);
      ASSERT_EQ(*owner, static_cast<int32_t>(place));
    }
    ++shared;
  }
  ASSERT_EQ(plan.tensor_count(), shared);
}

// Plans the job both ways.
inline void expect_symbolic_equals_explicit(const Job& job, int32_t ranks,
                                            const SaveRules& rules = {}) {
  const Result<RankDescriptions> world = world_of(job, ranks, rules);
  ASSERT_TRUE(world.ok()) << world.status().to_string();
  const Result<GlobalSavePlan> expected = explicit_plan(*world, rules);
  ASSERT_TRUE(expected.ok()) << expected.status().to_string();
  const Result<SymbolicSavePlan> plan = make_symbolic_plan(*world, rules);
  ASSERT_TRUE(plan.ok()) << plan.status().to_string();
  expect_equal_plans(*plan, *expected);
  expect_equal_owners(*plan, *expected);
}

}  // namespace shardwright::plan::test
