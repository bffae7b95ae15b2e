// SPDX-License-Identifier: Apache-2.0
//
// Cost of global plans in bytes of the heap per logical item, which does not grow with
// ranks x tensors. Its times are measured by the benchmark plan_symbolic.
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "tests/core/plan/describe/layout_jobs.h"
#include "tests/support/run_length.h"

namespace shardwright::plan::test {
namespace {

using shardwright::test::kSanitized;

struct JobSize {
  int32_t replicas = 1;
  int32_t shards = 1;
  int32_t tensor_parallel = 1;
  int32_t tensors = 1;
  bool all_shapes_differ = false;  // and none divides evenly
  int32_t ranks() const { return replicas * shards * tensor_parallel; }
};

// Entries of a transformer's state under hybrid sharding with tensor parallelism: every tenth
// tensor is a norm that all ranks hold.
std::vector<JobEntry> entries_of(const JobSize& size) {
  const Mesh mesh{{size.replicas, size.shards, size.tensor_parallel}, {}, {}};
  const auto rows = layout_of(mesh, {replicate(), shard(0), shard(0)});
  const auto columns = layout_of(mesh, {replicate(), shard(0), shard(1)});
  std::vector<JobEntry> entries;
  for (int32_t i = 0; i < size.tensors; ++i) {
    JobEntry entry;
    entry.name =
        "model.layers." + std::to_string(i / 10) + ".block.weight_" + std::to_string(i % 10);
    entry.dtype = DType::kBfloat16;
    if (i % 10 == 9) {
      entry.shape = {8192};
    } else {
      entry.form = JobEntry::Form::kLayout;
      entry.kind = EntryKind::kSharded;
      entry.layout = i % 2 == 0 ? rows : columns;
      entry.shape = i % 10 < 4   ? Dims{8192, 8192}
                    : i % 10 < 8 ? Dims{28672, 8192}
                                 : Dims{8000, 1000};
    }
    if (size.all_shapes_differ) entry.shape[0] += 2 * i + 1;
    entries.push_back(std::move(entry));
  }
  return entries;
}

RankPlans world_of_size(const JobSize& size) {
  Result<LocalPlan> local = describe(entries_of(size), {0, size.ranks()});
  EXPECT_TRUE(local.ok()) << local.status().to_string();
  const std::vector<Digest128> digests(static_cast<size_t>(size.ranks()),
                                       local->part.description_digest);
  Result<RankPlans> world = make_rank_plans(digests, {local->description}, {});
  EXPECT_TRUE(world.ok()) << world.status().to_string();
  return *std::move(world);
}

struct Cost {
  double bytes = 0;    // of the heap that the plan keeps
  uint64_t items = 0;  // entries of all ranks
};

Cost cost_of(const JobSize& size) {
  const RankPlans world = world_of_size(size);
  Cost cost;
  cost.items = static_cast<uint64_t>(size.ranks()) * static_cast<uint64_t>(size.tensors);
  const size_t heap_before = mallinfo2().uordblks;
  const Result<GlobalSavePlan> plan = make_global_plan(world, {});
  EXPECT_TRUE(plan.ok()) << plan.status().to_string();
  cost.bytes = static_cast<double>(mallinfo2().uordblks - heap_before);
  const std::vector<uint64_t>& bytes = plan->writes.bytes;
  const uint64_t all = std::reduce(bytes.begin(), bytes.end());
  EXPECT_EQ(all, plan->catalog.payload_bytes());
  printf("%d ranks x %d tensors: %.4f B per item, %llu chunks, most %.2f of mean bytes\n",
         size.ranks(), size.tensors, cost.bytes / static_cast<double>(cost.items),
         static_cast<unsigned long long>(plan->catalog.chunk_count()),
         static_cast<double>(*std::ranges::max_element(bytes)) * size.ranks() /
             static_cast<double>(all));
  return cost;
}

TEST(GlobalPlanCost, SixteenThousandRanksOfAThousandTensors) {
  const Cost cost = cost_of({8, 256, 8, 1000});
  if (kSanitized) return;
  EXPECT_LT(cost.bytes / static_cast<double>(cost.items), 0.1);
}

TEST(GlobalPlanCost, TwoHundredMillionItems) {
  const Cost cost = cost_of({64, 256, 8, 2000});
  if (kSanitized) return;
  EXPECT_LT(cost.bytes / static_cast<double>(cost.items), 0.1);
}

// The worst case: no two tensors share a rule, so each costs O(ranks).
TEST(GlobalPlanCost, AThousandDifferentUnevenShapes) {
  const Cost cost = cost_of({8, 256, 8, 1000, true});
  if (kSanitized) return;
  EXPECT_LT(cost.bytes / static_cast<double>(cost.items), 0.5);
}

TEST(GlobalPlanCost, NothingGrowsWithRanksTimesTensors) {
  const Cost base = cost_of({4, 64, 4, 500});
  const Cost both = cost_of({16, 256, 4, 8000});
  if (kSanitized) return;  // whose allocators say nothing
  // 16 times the ranks and 16 times the tensors: 256 times the items at 16 times the memory.
  EXPECT_LT(both.bytes, base.bytes * 40);
}

// What ranks exchange: 16 bytes each, and one description of at most 100 bytes per tensor.
TEST(GlobalPlanCost, OneRepresentativeOfAFewKilobytes) {
  const std::vector<JobEntry> entries = entries_of({8, 256, 8, 1000});
  const Result<LocalPlan> local = describe(entries, {77, 16384});
  ASSERT_TRUE(local.ok()) << local.status().to_string();
  const Result<std::vector<std::byte>> bytes = encode(local->description);
  ASSERT_TRUE(bytes.ok());
  printf("description: %.1f B per tensor\n", static_cast<double>(bytes->size()) / 1000);
  EXPECT_LE(bytes->size(), 100U * 1000U);
  EXPECT_TRUE(view_of(local->part).empty());
  const Result<LocalPlan> other = describe(entries, {16383, 16384});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->part.description_digest, local->part.description_digest);
}

}  // namespace
}  // namespace shardwright::plan::test
