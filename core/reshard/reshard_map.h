// SPDX-License-Identifier: Apache-2.0
//
// What a host says of a reshard that no checkpoint tells: what lies where in buckets, the rules
// under which weights and their states are stored, how the job that goes on cuts its buckets. Read
// from JSON; a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/reshard/assign_buckets.h"
#include "core/state/mapping.h"

namespace shardwright::reshard {

inline constexpr int64_t kOneBucket = INT64_MAX;  // no buffer has as many elements

struct ReshardMap {
  std::vector<SaidPlace> places;
  Mapping mapping;
  // Of the target job, where buckets are made for it; nullopt: arguments say it.
  std::optional<int64_t> bucket_size;       // elements with which one is full, or kOneBucket
  std::optional<bool> has_grouped_experts;  // a parameter of all experts, then the next one
  std::string text;                         // what it was read from; tells maps apart
};

// {"buckets": [{"bucket": NAME, "begin": 0, "parts": [{"tensor": NAME, "offsets": [0, 0],
//  "sizes": [64, 32]}]}], "mapping": {"schema": 1, "rules": [...]}, "bucket_size": 40000000,
//  "grouped_experts": true}, of which each may be absent. A bucket size of null is kOneBucket; the
// mapping is that of docs/formats/mapping.md.
// INVALID_ARGUMENT with line and column; the failures of Mapping::parse.
Result<ReshardMap> read_map(std::string_view json);

}  // namespace shardwright::reshard
