// SPDX-License-Identifier: Apache-2.0
//
// What a save or a load of a described job would cost, before anything moves: every rank of the job
// is simulated, the plans are those of the planner itself, and nothing is written or read. Pure; no
// I/O, no threads. Cost: a save is planned as a real one is, O(n log n) in what the ranks hold; a
// load is linear in what they want.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/base/result.h"
#include "core/job_description/job_description.h"
#include "core/layout/box_bytes.h"
#include "core/plan/load_plan.h"
#include "core/plan/plan_options.h"
#include "core/plan/save_plan.h"

namespace shardwright::estimate {

using job_description::HeldBox;
using job_description::JobDescription;
using job_description::JobObject;
using job_description::JobTensor;
using job_description::kHeldByBoxes;
using job_description::kJobObjectType;
using job_description::layout_ranks;
using job_description::StoredCheckpoint;
using plan::GlobalSavePlan;
using plan::LoadPlan;
using plan::SaveRules;

// Pieces that all ranks together may hold; more is refused with RESOURCE_EXHAUSTED.
inline constexpr uint64_t kMaxSimulatedPieces = uint64_t{1} << 26;
inline constexpr uint32_t kMostRanksPerNode = 64;
// Chunks that an estimate for a host lists.
inline constexpr uint64_t kMaxListedChunks = uint64_t{1} << 20;

// Whether nodes send each other blocks of a load that several of them want; one reads each block.
enum class NodeExchange : int32_t { kOff = 0, kAlways = 1 };

struct EstimateOptions {
  plan::OwnerRule owner = plan::OwnerRule::kBalanced;
  plan::Preset preset = plan::Preset::kNative;
  uint64_t memory_budget_bytes = kDefaultMemoryBudgetBytes;  // staging of one rank
  uint64_t rank_bytes_per_second = 0;                        // 0 = no estimate of time
  uint64_t total_bytes_per_second = 0;  // that all ranks share; 0 = no such limit
  uint64_t listed_chunks = 0;           // at most so many in all, 0 = none are listed
  // Of a load: ranks n * r to n * r + r - 1 run on one machine and share reads; at most
  // kMostRanksPerNode, 0 = each reads alone.
  uint32_t ranks_per_node = 0;
  NodeExchange exchange = NodeExchange::kOff;  // of a load with ranks_per_node
};

// A distinct box of a tensor: who writes it, or holds it first where nothing is written.
struct ListedChunk {
  Box box;
  int32_t rank = 0;
  uint64_t holders = 0;
};

// Tensors with equal dtype, shape and layout whose names differ in numbers only. Counts of chunks
// are those of one tensor. The first one's are listed when options ask for it and all fit.
struct TensorGroup {
  std::string names;  // "layers.{0..60}.w"
  std::string first_name;
  size_t tensor_count = 0;
  DType dtype = DType::kInvalid;
  EntryKind kind = EntryKind::kSharded;
  Dims shape;
  std::string layout;           // axes and placements; empty for boxes
  uint64_t tensor_bytes = 0;    // of one tensor
  uint64_t chunk_count = 0;     // distinct boxes of one tensor
  uint64_t smallest_bytes = 0;  // of a box
  uint64_t largest_bytes = 0;
  uint64_t fewest_holders = 0;  // replicas of a box
  uint64_t most_holders = 0;
  std::vector<ListedChunk> chunks;  // empty, or all of one tensor
};

// One value per rank.
using RankColumn = std::vector<uint64_t>;

struct Estimate {
  bool is_load = false;
  int32_t rank_count = 1;
  uint64_t tensor_count = 0;
  uint64_t object_count = 0;
  uint64_t chunk_count = 0;  // stored
  uint64_t file_count = 0;   // stored, the manifest aside
  uint64_t stored_bytes = 0;
  RankColumn held_bytes;   // of the rank's own state
  RankColumn moved_bytes;  // written, or read with what lies around it in digest blocks
  RankColumn over_bytes;   // of these nobody wants: padding of a file, the rest of digest blocks
  // Of a load: what comes to the rank through the memory of its machine, from its network, and what
  // it sends there.
  RankColumn shared_bytes;
  RankColumn received_bytes;
  RankColumn sent_bytes;
  RankColumn operations;  // chunks and objects that are written or read, by whichever rank
  RankColumn files;       // that the rank writes, or that hold what it wants
  RankColumn staging_bytes;
  RankColumn peak_bytes;    // state, staging, and on rank 0 of a save the plans of all ranks
  uint64_t plan_bytes = 0;  // memory of the plans on rank 0 of a save
  std::vector<TensorGroup> groups;
  EstimateOptions options;
};

struct SimulatedSave {
  Estimate estimate;
  GlobalSavePlan plan;
};

// All ranks of the job save what they hold. The failures of make_global_plan; UNIMPLEMENTED for
// boxes of sub-byte tensors that begin or end inside a byte, which no state can hold.
Result<SimulatedSave> simulate_save(const JobDescription& job, const EstimateOptions& options);

// The checkpoint of a job that comes from one, else what a save of it would store.
Result<std::shared_ptr<const StoredCheckpoint>> stored_checkpoint(const JobDescription& job,
                                                                  const EstimateOptions& options);

// Ranks of wanted load what stored holds. wanted was laid out (lay_out) on the job whose checkpoint
// that is, or is that job itself. UNIMPLEMENTED as simulate_save.
Result<Estimate> estimate_load(const StoredCheckpoint& stored, const JobDescription& wanted,
                               const EstimateOptions& options);

// The load plan of each rank, from rank 0 on, as make_load_plan gives it to a state that holds what
// the job says; ends with the first failure of take. Entries are the tensors and objects of the
// rank in the order of the description. Time and memory: as the plans of all ranks one after the
// other. RESOURCE_EXHAUSTED for more than kMaxSimulatedPieces tensors on all ranks; the failures of
// make_load_plan.
using TakeLoadPlan = std::function<Status(LoadPlan plan)>;
Status simulate_load(const StoredCheckpoint& stored, const JobDescription& wanted,
                     const TakeLoadPlan& take);

// {"schema": 1, "command": "save" or "load", ...}; docs/formats/mesh.md names every key.
std::string estimate_json(const Estimate& estimate);

}  // namespace shardwright::estimate
