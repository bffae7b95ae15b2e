// SPDX-License-Identifier: Apache-2.0
//
// Opens native checkpoints and lists what lies at a path. Reader rules: only a manifest whose
// digest holds and whose files have the named sizes, trailers and index digests is trusted.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/format.h"
#include "core/format/native/manifest.h"

namespace shardwright::format::native {

inline constexpr std::string_view kFormatName = "native";

// The native format for a table.
std::unique_ptr<const Format> make_format();

// Identity of the manifest that is current now: version and generation are empty when there is
// none. A manifest of a newer version is UNIMPLEMENTED.
Result<CurrentCheckpoint> read_current(const Location& location);

// Generations that lie under the prefix, whether the manifest names them or not. A temporary
// manifest that a crashed save left counts to its generation. DATA_LOSS when the manifest is
// damaged.
Result<std::vector<GenerationInfo>> list_generations(const Location& location);

}  // namespace shardwright::format::native
