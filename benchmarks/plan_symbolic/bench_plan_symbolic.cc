// SPDX-License-Identifier: Apache-2.0
//
// Symbolic and explicit global save plans of one job, for shardwright.py and explicit.py: a
// transformer under hybrid sharding with tensor parallelism, every tenth tensor a norm that all
// ranks hold. One job at a time; one thread.
#include <malloc.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/save/global_plan.h"
#include "core/plan/symbolic/builder.h"
#include "core/plan/symbolic/symbolic_plan.h"
#include "core/plan/wire/wire.h"

namespace {

using namespace shardwright;
using plan::SymbolicBuilder;

constexpr char kGeneration[] = "0123456789abcdef0123456789abcdef";

struct Job {
  std::vector<plan::Digest128> digests;  // what all ranks have exchanged
  plan::Bytes representative;
  std::optional<plan::SymbolicSavePlan> symbolic;
  std::vector<plan::LocalSavePlan> locals;
  std::optional<plan::GlobalSavePlan> merged;
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

Status describe(SymbolicBuilder* builder, const Mesh& mesh, int32_t tensors, bool all_differ) {
  const auto rows = layout_of(mesh, 0);
  const auto columns = layout_of(mesh, 1);
  for (int32_t i = 0; i < tensors; ++i) {
    const std::string name =
        "model.layers." + std::to_string(i / 10) + ".block.weight_" + std::to_string(i % 10);
    Dims shape{8192};
    SymbolicBuilder::Tensor tensor{name, "", DType::kBfloat16, EntryKind::kAuto, shape, {}};
    if (i % 10 == 9) {
      SHW_RETURN_IF_ERROR(builder->add_whole(tensor));
      continue;
    }
    shape = i % 10 < 4 ? Dims{8192, 8192} : i % 10 < 8 ? Dims{28672, 8192} : Dims{8000, 1000};
    if (all_differ) shape[0] += 2 * i + 1;
    tensor.shape = shape;
    SHW_RETURN_IF_ERROR(builder->add_sharded(tensor, i % 2 == 0 ? *rows : *columns));
  }
  return {};
}

Status make_job(const Mesh& mesh, int32_t tensors, bool all_differ) {
  const auto ranks = static_cast<int32_t>(element_count_of(mesh.shape));
  SHW_ASSIGN_OR_RETURN(SymbolicBuilder builder, SymbolicBuilder::create({}, {0, ranks}));
  SHW_RETURN_IF_ERROR(describe(&builder, mesh, tensors, all_differ));
  SHW_ASSIGN_OR_RETURN(const plan::LocalSymbolicPlan local, builder.finish());
  job() = Job();
  job().digests.assign(static_cast<size_t>(ranks), local.part.description_digest);
  SHW_ASSIGN_OR_RETURN(job().representative, plan::encode(local.description));
  return {};
}

Result<plan::RankDescriptions> world_of_job() {
  SHW_ASSIGN_OR_RETURN(plan::SymbolicDescription description,
                       plan::decode_symbolic_save(job().representative));
  std::vector<plan::SymbolicDescription> descriptions;
  descriptions.push_back(std::move(description));
  return plan::make_rank_descriptions(job().digests, std::move(descriptions), {});
}

Status plan_symbolically() {
  job().symbolic.reset();
  const size_t before = mallinfo2().uordblks;
  SHW_ASSIGN_OR_RETURN(plan::RankDescriptions world, world_of_job());
  SHW_ASSIGN_OR_RETURN(job().symbolic, plan::make_symbolic_plan(std::move(world), {}));
  job().plan_bytes = mallinfo2().uordblks - before;
  return job().symbolic->write_list(0, {kGeneration, {}}).status();
}

Status expand_locals() {
  SHW_ASSIGN_OR_RETURN(const plan::RankDescriptions world, world_of_job());
  for (int32_t r = 0; r < world.rank_count(); ++r) {
    SHW_ASSIGN_OR_RETURN(plan::LocalSavePlan local, plan::expand_local_plan(world, r));
    job().locals.push_back(std::move(local));
  }
  return {};
}

Status plan_explicitly() {
  job().merged.reset();
  SHW_ASSIGN_OR_RETURN(job().merged, plan::make_global_plan(job().locals, {}, kGeneration));
  return {};
}

bool same_list(const plan::WriteList& a, const plan::WriteList& b) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (a.items[i].entry != b.items[i].entry || a.items[i].piece != b.items[i].piece ||
        a.items[i].size_bytes != b.items[i].size_bytes)
      return false;
  }
  return true;
}

// Catalog, files, digest and write lists.
Status compare() {
  SHW_RETURN_IF_ERROR(plan_symbolically());
  if (job().locals.empty()) SHW_RETURN_IF_ERROR(expand_locals());
  SHW_RETURN_IF_ERROR(plan_explicitly());
  SHW_ASSIGN_OR_RETURN(const plan::GlobalSavePlan expanded, job().symbolic->expand(kGeneration));
  SHW_ASSIGN_OR_RETURN(const plan::Bytes symbolic_bytes, plan::encode(expanded));
  SHW_ASSIGN_OR_RETURN(const plan::Bytes merged_bytes, plan::encode(*job().merged));
  bool same = symbolic_bytes == merged_bytes;
  for (size_t r = 0; same && r < job().merged->lists.size(); ++r) {
    same = same_list(expanded.lists[r], job().merged->lists[r]);
    const auto alone = job().symbolic->write_list(static_cast<int32_t>(r), {kGeneration, {}});
    same = same && alone.ok() && same_list(*alone, job().merged->lists[r]);
  }
  return same ? Status() : internal_error("the symbolic and the explicit plan differ");
}

}  // namespace

#define BENCH_EXPORT extern "C" __attribute__((visibility("default")))

// Each returns 1 on success.
BENCH_EXPORT int bench_make(int32_t replicas, int32_t shards, int32_t parts, int32_t tensors,
                            int32_t all_differ) {
  return make_job({{replicas, shards, parts}, {}, {}}, tensors, all_differ != 0).ok() ? 1 : 0;
}
BENCH_EXPORT int bench_plan_symbolic() {
  return plan_symbolically().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_expand_locals() {
  return expand_locals().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_plan_explicit() {
  return plan_explicitly().ok() ? 1 : 0;
}
BENCH_EXPORT int bench_compare() {
  return compare().ok() ? 1 : 0;
}
// Bytes of the heap that the last symbolic plan holds; of the representative's buffer; entries of
// all ranks; stored chunks.
BENCH_EXPORT uint64_t bench_plan_bytes() {
  return job().plan_bytes;
}
BENCH_EXPORT uint64_t bench_description_bytes() {
  return job().representative.size();
}
BENCH_EXPORT uint64_t bench_items() {
  return job().symbolic->totals().items;
}
BENCH_EXPORT uint64_t bench_chunks() {
  return job().symbolic->totals().chunks;
}
