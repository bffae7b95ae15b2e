// SPDX-License-Identifier: Apache-2.0
//
// Names that make a directory somebody else's. Opening looks for them before it lets a format have
// the directory, and a save puts nothing beside them. Thread rule of the storage.
#pragma once

#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/run_directory.h"

namespace shardwright::format {

struct Family {
  std::string_view pattern;  // glob over a name directly in the directory
  std::string_view text;
};
// Such directories hold files of other formats as well and are read as none of them.
inline constexpr Family kFamiliesOfFiles[] = {
    {kTrackerName, "a Megatron run of checkpoints"},
};

// FAILED_PRECONDITION naming a file directly in the directory that makes it one of
// kFamiliesOfFiles or Megatron's, or whose name matches one of the patterns: a checkpoint beside it
// would hide it, or be hidden by it. Failures of the storage.
Status refuse_beside(const Location& location, std::span<const std::string_view> patterns);
// The same for Megatron's own saves, which take the place of what makes a directory Megatron's.
Status refuse_beside_megatron(const Location& location, std::span<const std::string_view> patterns);

}  // namespace shardwright::format
