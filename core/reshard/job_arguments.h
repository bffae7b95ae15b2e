// SPDX-License-Identifier: Apache-2.0
//
// What the arguments of a job of Megatron say, read as data, and what follows from them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/exec/checkpoint.h"
#include "core/reshard/reshard_map.h"

namespace shardwright::reshard {

// Integers, truth values (0 and 1) and values that are None (nullopt), by their names.
using JobArguments = std::map<std::string, std::optional<int64_t>, std::less<>>;

// Empty where a checkpoint has none that are known. DATA_LOSS for damaged ones.
Result<JobArguments> read_job_arguments(const exec::Checkpoint& source);

// Elements with which a bucket of a job's first stage is full, or kOneBucket: what the map says, or
// what the arguments make megatron-core do. FAILED_PRECONDITION naming what is missing.
Result<int64_t> bucket_size_of(const ReshardMap& map, const JobArguments& arguments,
                               int64_t data_parallel);
// What the map says of it, or the arguments; nullopt: neither.
std::optional<bool> has_grouped_experts(const ReshardMap& map, const JobArguments& arguments);

}  // namespace shardwright::reshard
