// SPDX-License-Identifier: Apache-2.0
//
// What saves and loads of described jobs would cost. A save has the plan of the same job described
// box by box. What a rank reads is what it wants, by the estimate and by the load plans, which
// agree on what can be loaded. Jobs are small; a larger one is left out.
//
//   input = owner + 4 x preset, description of the job that saves, perhaps the byte 0xFF, which no
//           UTF-8 holds, and a description of the job that loads
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/json_tree.h"
#include "core/estimate/estimate_internal.h"
#include "core/job_description/describe_ranks.h"
#include "core/plan/options_text.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/wire/wire.h"
#include "tests/core/plan/explicit_plan.h"
#include "tests/core/plan/read_list.h"

namespace {

using namespace shardwright::estimate;
using namespace shardwright::plan;
using shardwright::Box;
using shardwright::JsonTree;
using shardwright::Result;
using shardwright::Status;
using shardwright::StatusCode;
using shardwright::job_description::describe_ranks;
using shardwright::job_description::read_job_description;

constexpr int32_t kMostRanks = 32;
constexpr size_t kMostEntries = 32;
constexpr size_t kMostBoxes = 64;  // of one tensor on one rank

void check(bool holds) {
  if (!holds) std::abort();
}

void check_reason(const Status& status) {
  check(!status.message().empty() && status.code() != StatusCode::kInternal);
}

bool is_small(const JobDescription& job) {
  if (job.rank_count > kMostRanks || job.tensors.size() > kMostEntries ||
      job.objects.size() > kMostEntries) {
    return false;
  }
  for (const JobTensor& tensor : job.tensors) {
    for (int32_t rank = 0; rank < job.rank_count; ++rank) {
      const Result<std::vector<Box>> boxes = held_boxes(job, tensor, rank);
      if (!boxes.ok() || boxes->size() > kMostBoxes) return false;
    }
  }
  return true;
}

uint64_t sum(const RankColumn& column) {
  return std::accumulate(column.begin(), column.end(), uint64_t{0});
}

void check_estimate(const Estimate& estimate) {
  const auto ranks = static_cast<size_t>(estimate.rank_count);
  for (const RankColumn* column :
       {&estimate.held_bytes, &estimate.moved_bytes, &estimate.over_bytes, &estimate.operations,
        &estimate.files, &estimate.staging_bytes, &estimate.peak_bytes}) {
    check(column->size() == ranks);
  }
  const std::string json = estimate_json(estimate);
  check(JsonTree::parse(json).ok());
}

// The plan of the job described box by box.
Result<GlobalSavePlan> plan_of_boxes(const JobDescription& job, const EstimateOptions& options) {
  SaveRules rules;
  rules.owner = options.owner;
  rules.preset = options.preset;
  rules.verify_replicas = VerifyReplicas::kOff;
  SHW_ASSIGN_OR_RETURN(const RankPlans ranks, describe_ranks(job, save_rules_text(rules)));
  SHW_ASSIGN_OR_RETURN(const RankPlans listed, shardwright::plan::test::listed_ranks(ranks));
  return make_global_plan(listed, rules);
}

void check_equal(const SimulatedSave& save, const GlobalSavePlan& expected) {
  const Result<Bytes> bytes = encode(save.plan);
  const Result<Bytes> expected_bytes = encode(expected);
  check(bytes.ok() && expected_bytes.ok() && *bytes == *expected_bytes);
  check(validate_plan(*bytes).empty());
  check(save.estimate.moved_bytes == expected.writes.bytes);
}

// False when such a job cannot be saved.
bool check_save(const JobDescription& job, const EstimateOptions& options) {
  const Result<SimulatedSave> save = simulate_save(job, options);
  if (!save.ok()) {
    check_reason(save.status());
    return false;
  }
  const Result<GlobalSavePlan> expected = plan_of_boxes(job, options);
  check(expected.ok());
  check_estimate(save->estimate);
  check(sum(save->estimate.moved_bytes) == save->estimate.stored_bytes);
  check_equal(*save, *expected);
  return true;
}

// Elements and objects that the rank takes out of the checkpoint.
uint64_t read_bytes(const LoadPlan& plan, const StoredCheckpoint& stored) {
  uint64_t bytes = 0;
  for (const ReadItem& read : shardwright::plan::test::reads_of(plan)) {
    const TensorRecord& tensor = stored.catalog.tensors[stored.catalog.tensor_of(read.chunk)];
    bytes += box_bytes(tensor.dtype, read.box);
  }
  for (const ObjectRead& read : plan.objects)
    bytes += stored.catalog.objects[read.object].size_bytes;
  return bytes;
}

void check_load(const StoredCheckpoint& stored, const JobDescription& wanted,
                const EstimateOptions& options) {
  const Result<Estimate> estimate = estimate_load(stored, wanted, options);
  std::vector<uint64_t> bytes;
  const Status simulated = simulate_load(stored, wanted, [&](LoadPlan plan) {
    check(plan.rank == static_cast<int32_t>(bytes.size()) && plan.missing.empty());
    bytes.push_back(read_bytes(plan, stored));
    return Status();
  });
  check(estimate.ok() == simulated.ok());
  if (!estimate.ok()) {
    check_reason(estimate.status());
    check_reason(simulated);
    return;
  }
  check_estimate(*estimate);
  check(estimate->held_bytes == bytes);
  for (size_t r = 0; r < bytes.size(); ++r)
    check(estimate->moved_bytes[r] - estimate->over_bytes[r] == bytes[r]);
}

std::optional<JobDescription> small_job(std::string_view text) {
  Result<JobDescription> job = read_job_description(text);
  if (!job.ok() || !is_small(*job)) return std::nullopt;
  return *std::move(job);
}

void check_loads(const JobDescription& saved, std::string_view second,
                 const EstimateOptions& options) {
  const Result<std::shared_ptr<const StoredCheckpoint>> stored = stored_checkpoint(saved, options);
  check(stored.ok());
  check_load(**stored, saved, options);
  const std::optional<JobDescription> target = small_job(second);
  if (!target.has_value()) return;
  const Result<JobDescription> wanted = lay_out(saved, *target);
  if (!wanted.ok()) return check_reason(wanted.status());
  if (is_small(*wanted)) check_load(**stored, *wanted, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  EstimateOptions options;
  options.owner = static_cast<OwnerRule>(data[0] % 4);
  options.preset = static_cast<Preset>(data[0] / 4 % 3);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t end = text.find('\xFF');
  const std::optional<JobDescription> job = small_job(text.substr(0, end));
  if (!job.has_value() || !check_save(*job, options)) return 0;
  check_loads(*job, end == std::string_view::npos ? "" : text.substr(end + 1), options);
  return 0;
}
