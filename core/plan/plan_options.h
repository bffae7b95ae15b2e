// SPDX-License-Identifier: Apache-2.0
//
// Options of planning, the same words and defaults as the public options table. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/state/state.h"

namespace shardwright::plan {

enum class OwnerRule : int32_t { kBalanced = 0, kLowestRank = 1, kExact = 2, kAll = 3 };
enum class VerifyReplicas : int32_t { kAuto = 0, kAll = 1, kOff = 2 };
// Whose planner decides what is left to choose: this library's own, that of HyperParallel's
// standard planners, of torch's default planners, of megatron-core's fully parallel save.
enum class Preset : int32_t { kNative = 0, kHyperparallel = 1, kTorch = 2, kMegatron = 3 };
enum class MissingRule : int32_t { kError = 0, kReport = 1 };
enum class UnexpectedRule : int32_t { kReport = 0, kError = 1 };
enum class CastRule : int32_t { kError = 0, kAllow = 1 };
enum class ShapeRule : int32_t { kError = 0, kCropAndPad = 1 };

// What a merge of descriptions proves about the boxes of each tensor.
enum class CoverRule : int32_t { kFull = 0, kDisjoint = 1, kOff = 2 };

// Which of how many ranks.
struct RankPosition {
  int32_t rank = 0;
  int32_t world_size = 1;
};

struct KindPattern {
  std::string glob;
  EntryKind kind = EntryKind::kReplicated;
};

struct SaveRules {
  OwnerRule owner = OwnerRule::kBalanced;
  VerifyReplicas verify_replicas = VerifyReplicas::kAuto;
  Preset preset = Preset::kNative;
  std::vector<KindPattern> kinds;  // first match wins, over the entry's own kind
};

struct MergeRules {
  OwnerRule owner = OwnerRule::kBalanced;
  Preset preset = Preset::kNative;
  CoverRule cover = CoverRule::kFull;
  VerifyReplicas verify_replicas = VerifyReplicas::kAuto;
};

struct StrictPattern {
  std::string glob;
  MissingRule missing = MissingRule::kError;
  UnexpectedRule unexpected = UnexpectedRule::kReport;
  CastRule cast = CastRule::kError;
  ShapeRule shape = ShapeRule::kError;
};

struct LoadRules {
  MissingRule missing = MissingRule::kError;
  UnexpectedRule unexpected = UnexpectedRule::kReport;
  CastRule cast = CastRule::kError;
  ShapeRule shape = ShapeRule::kError;
  std::vector<StrictPattern> strict;  // first match wins
  Preset preset = Preset::kNative;
};

}  // namespace shardwright::plan
