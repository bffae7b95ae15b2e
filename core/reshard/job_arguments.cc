// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/job_arguments.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_tensor.h"
#include "core/reshard/job_state.h"

namespace shardwright::reshard {
namespace {

namespace archive = format::archive;
using archive::PickleKind;
using archive::PickleRef;

// distributed_data_parallel.py of megatron-core 0.16.1.
constexpr int64_t kDefaultBucketSize = 40'000'000;
constexpr int64_t kDefaultPerRank = 1'000'000;

JobArguments arguments_of(const Value& dict) {
  JobArguments arguments;
  for (const auto& [part, value] : dict.members) {
    const auto json = nlohmann::json::parse(value.json, nullptr, /*allow_exceptions=*/false);
    if (json.is_null()) arguments[part.text] = std::nullopt;
    if (json.is_number_integer()) arguments[part.text] = json.get<int64_t>();
    if (json.is_boolean()) arguments[part.text] = json.get<bool>() ? 1 : 0;
  }
  return arguments;
}

// The dict that a Namespace has as its state.
Result<JobArguments> arguments_of(std::span<const std::byte> pickle) {
  archive::PickleOptions options;
  options.file = "arguments";
  options.vocabulary = archive::torch_vocabulary();
  SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(pickle, options));
  JobArguments arguments;
  if (data.kind(data.root()) != PickleKind::kObject) return arguments;
  const PickleRef state = data.state(data.root());
  if (state.is_absent() || data.kind(state) != PickleKind::kDict) return arguments;
  archive::PickleCursor pairs = data.pairs(state);
  for (PickleRef key, value; pairs.next(&key) && pairs.next(&value);) {
    if (data.kind(key) != PickleKind::kText) continue;
    std::string name(data.text(key));
    if (data.kind(value) == PickleKind::kNone) arguments[name] = std::nullopt;
    if (data.kind(value) == PickleKind::kInteger) arguments[name] = data.integer(value);
    if (data.kind(value) == PickleKind::kBool) arguments[name] = data.boolean(value) ? 1 : 0;
  }
  return arguments;
}

}  // namespace

Result<JobArguments> read_job_arguments(const exec::Checkpoint& source) {
  SHW_ASSIGN_OR_RETURN(const Value state, read_common_state(source));
  const Value* const found = state.find("args");
  if (found == nullptr) return JobArguments();
  if (found->kind == Value::Kind::kDict) return arguments_of(*found);
  SHW_ASSIGN_OR_RETURN(const StoredLeaf leaf, read_leaf(source, *found));
  if (leaf.type != archive::kPickleType) return JobArguments();
  return arguments_of(std::as_bytes(std::span(leaf.bytes)));
}

Result<int64_t> bucket_size_of(const ReshardMap& map, const JobArguments& arguments,
                               int64_t data_parallel) {
  if (map.bucket_size.has_value()) return *map.bucket_size;
  const auto said = [&](std::string_view name) {
    const auto found = arguments.find(name);
    return found == arguments.end() ? std::nullopt : found->second;
  };
  const std::optional<int64_t> overlap = said("overlap_grad_reduce");
  if (overlap == 0) return kOneBucket;
  const std::optional<int64_t> size = said("ddp_bucket_size");
  if (overlap.has_value() && size.has_value() && *size > 0) return *size;
  const bool is_default = overlap.has_value() && arguments.contains("ddp_bucket_size") &&
                          !size.has_value() && !said("ddp_num_buckets").has_value();
  if (is_default) return std::max(kDefaultBucketSize, kDefaultPerRank * data_parallel);
  return failed_precondition(
             "buckets for another shape cannot be made: the arguments of the job do not say when a "
             "bucket is full (overlap_grad_reduce and ddp_bucket_size); a map can say "
             "{\"bucket_size\": N}, or null where each buffer is one bucket")
      .with_detail("parameter", "map");
}

std::optional<bool> has_grouped_experts(const ReshardMap& map, const JobArguments& arguments) {
  if (map.has_grouped_experts.has_value()) return map.has_grouped_experts;
  const auto found = arguments.find("moe_grouped_gemm");
  if (found == arguments.end() || !found->second.has_value()) return std::nullopt;
  return *found->second != 0;
}

}  // namespace shardwright::reshard
