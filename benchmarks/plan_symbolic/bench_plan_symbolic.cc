// SPDX-License-Identifier: Apache-2.0
//
// The plans of one job, described by layouts and box by box, for shardwright.py and explicit.py: a
// transformer under hybrid sharding with tensor parallelism, every tenth tensor a norm that all
// ranks hold. One job at a time; one thread.
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/format/native/manifest.h"
#include "core/plan/describe/describe_state.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/load_plan.h"
#include "core/plan/options_text.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/save/write_items.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/explicit_plan.h"

namespace {

using namespace shardwright;

constexpr char kGeneration[] = "0123456789abcdef0123456789abcdef";

struct Job {
  Mesh mesh;
  int32_t tensors = 0;
  bool all_differ = false;
  State state;                     // of rank 0
  std::vector<Digest128> digests;  // what all ranks have exchanged
  plan::Bytes representative;
  std::optional<plan::GlobalSavePlan> planned;
  std::optional<plan::RankPlans> listed;  // what the ranks say box by box
  std::vector<Digest128> listed_digests;
  std::optional<plan::GlobalSavePlan> merged;
  std::vector<std::byte> manifest;
  uint64_t plan_bytes = 0;
};

Job& job() {
  static Job one;
  return one;
}

std::shared_ptr<const Layout> layout_of(const Mesh& mesh, int32_t second_dim) {
  return *Layout::create(mesh, {{PlacementKind::kReplicate, 0, 0},
                                {PlacementKind::kShard, 0, 0},
                                {PlacementKind::kShard, second_dim, 0}});
}

// What rank 0 holds; nobody looks at the values.
Status make_state() {
  static std::byte memory[64];
  const auto rows = layout_of(job().mesh, 0);
  const auto columns = layout_of(job().mesh, 1);
  std::vector<TensorEntry> entries;
  for (int32_t i = 0; i < job().tensors; ++i) {
    TensorEntry entry;
    entry.name =
        "model.layers." + std::to_string(i / 10) + ".block.weight_" + std::to_string(i % 10);
    entry.global_shape = i % 10 == 9  ? Dims{8192}
                         : i % 10 < 4 ? Dims{8192, 8192}
                         : i % 10 < 8 ? Dims{28672, 8192}
                                      : Dims{8000, 1000};
    if (job().all_differ) entry.global_shape[0] += 2 * i + 1;
    entry.local.data = memory;
    entry.local.dtype = DType::kBfloat16;
    Box box = whole_box(entry.global_shape);
    if (i % 10 != 9) {
      entry.layout = i % 2 == 0 ? rows : columns;
      SHW_ASSIGN_OR_RETURN(const auto pieces, entry.layout->pieces(entry.global_shape, 0));
      box = pieces[0].box;
    }
    entry.pieces.push_back({box, 0});
    entry.local.shape = box.sizes;
    entries.push_back(std::move(entry));
  }
  return job().state.add_tensors(entries);
}

int32_t rank_count() {
  return static_cast<int32_t>(element_count_of(job().mesh.shape));
}

Result<plan::LocalPlan> describe_rank() {
  return plan::describe_state(job().state, {}, {0, rank_count()}, {}, plan::save_rules_text({}));
}

Status make_job(const Mesh& mesh, int32_t tensors, bool all_differ) {
  job() = Job();
  job().mesh = mesh;
  job().tensors = tensors;
  job().all_differ = all_differ;
  SHW_RETURN_IF_ERROR(make_state());
  SHW_ASSIGN_OR_RETURN(const plan::LocalPlan local, describe_rank());
  job().digests.assign(static_cast<size_t>(rank_count()), local.part.description_digest);
  SHW_ASSIGN_OR_RETURN(job().representative, plan::encode(local.description));
  return {};
}

Result<plan::RankPlans> world_of_job() {
  SHW_ASSIGN_OR_RETURN(plan::Description description,
                       plan::decode<plan::Description>(job().representative));
  std::vector<plan::Description> descriptions;
  descriptions.push_back(std::move(description));
  return plan::make_rank_plans(job().digests, std::move(descriptions), {});
}

// What the coordinator does: descriptions decoded and checked, the plan, what one rank is told.
Status plan_job() {
  job().planned.reset();
  const size_t before = mallinfo2().uordblks;
  SHW_ASSIGN_OR_RETURN(const plan::RankPlans world, world_of_job());
  SHW_ASSIGN_OR_RETURN(job().planned, plan::make_global_plan(world, {}));
  job().plan_bytes = mallinfo2().uordblks - before;
  job().planned->generation = kGeneration;
  return job().planned->writes.kept.bits(0).empty() ? internal_error("rank 0 has no bits")
                                                    : Status();
}

// What any other rank does: its description and digest, then the items that it is told to write.
Status plan_rank() {
  SHW_ASSIGN_OR_RETURN(const plan::LocalPlan local, describe_rank());
  const plan::PartView part = plan::view_of(local.part);
  if (plan::local_digest(local.part.description_digest, part,
                         {local.part.rank, local.part.world_size}) == Digest128{})
    return internal_error("the local plan has no digest");
  const plan::KeptItems& kept = job().planned->writes.kept;
  const plan::EntryNumbers numbers(local.description);
  const plan::RankView rank{local.description, numbers, part, 0};
  return plan::write_items(rank, kept.bits(0), kept.order(0)).size() ==
                 job().planned->writes.item_counts[0]
             ? Status()
             : internal_error("the rank has other items than the plan");
}

Status make_manifest() {
  format::native::Manifest manifest;
  manifest.generation = kGeneration;
  manifest.world_size = rank_count();
  manifest.writer = "bench";
  for (int32_t r = 0; r < rank_count(); ++r) {
    if (job().planned->writes.item_counts[static_cast<size_t>(r)] == 0) continue;
    const uint64_t bytes = job().planned->writes.bytes[static_cast<size_t>(r)];
    manifest.files.push_back({r, bytes + 1'000'000, bytes + 100'000, 800'000, {}});
  }
  manifest.catalog = job().planned->catalog;
  SHW_ASSIGN_OR_RETURN(job().manifest, format::native::encode_manifest(manifest));
  return {};
}

Status open_manifest() {
  return format::native::decode_manifest(job().manifest).status();
}

Status plan_load() {
  return plan::make_load_plan(job().state, job().planned->catalog, {}, 0).status();
}

Status list_ranks() {
  SHW_ASSIGN_OR_RETURN(const plan::RankPlans world, world_of_job());
  SHW_ASSIGN_OR_RETURN(job().listed, plan::test::listed_ranks(world));
  job().listed_digests.clear();
  for (const uint32_t description : job().listed->description_of_rank)
    job().listed_digests.push_back(job().listed->digests[description]);
  return {};
}

// Local plans put together and checked, and the plan.
Status plan_listed() {
  job().merged.reset();
  const plan::RankPlans& listed = *job().listed;
  SHW_ASSIGN_OR_RETURN(
      const plan::RankPlans world,
      plan::make_rank_plans(job().listed_digests, listed.descriptions, listed.parts, {}));
  SHW_ASSIGN_OR_RETURN(job().merged, plan::make_global_plan(world, {}));
  return {};
}

// Catalog, and what each rank writes.
Status compare() {
  SHW_RETURN_IF_ERROR(plan_job());
  if (!job().listed.has_value()) SHW_RETURN_IF_ERROR(list_ranks());
  SHW_RETURN_IF_ERROR(plan_listed());
  job().merged->generation = kGeneration;
  SHW_ASSIGN_OR_RETURN(const plan::Bytes planned, plan::encode(*job().planned));
  SHW_ASSIGN_OR_RETURN(const plan::Bytes merged, plan::encode(*job().merged));
  const bool same = planned == merged &&
                    job().planned->writes.bytes == job().merged->writes.bytes &&
                    job().planned->writes.item_counts == job().merged->writes.item_counts;
  return same ? Status() : internal_error("the plans by layouts and box by box differ");
}

}  // namespace

#define BENCH_EXPORT extern "C" __attribute__((visibility("default")))

// Each returns 1 on success.
BENCH_EXPORT int bench_make(int32_t replicas, int32_t shards, int32_t parts, int32_t tensors,
                            int32_t all_differ) {
  return make_job({{replicas, shards, parts}, {}, {}}, tensors, all_differ != 0).ok() ? 1 : 0;
}
BENCH_EXPORT int bench_plan_job() {
  return plan_job().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_plan_rank() {
  return plan_rank().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_make_manifest() {
  return make_manifest().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_open_manifest() {
  return open_manifest().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_plan_load() {
  return plan_load().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_expand_locals() {
  return list_ranks().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_plan_explicit() {
  return plan_listed().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_compare() {
  return compare().ok() ? 1 : 0;
}
// Bytes of the heap that the last plan holds; of the representative's buffer; of the manifest;
// stored chunks.
BENCH_EXPORT uint64_t bench_plan_bytes() {
  return job().plan_bytes;
}
BENCH_EXPORT uint64_t bench_description_bytes() {
  return job().representative.size();
}
BENCH_EXPORT uint64_t bench_manifest_bytes() {
  return job().manifest.size();
}
BENCH_EXPORT uint64_t bench_chunks() {
  return job().planned->catalog.chunk_count();
}
