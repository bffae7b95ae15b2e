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

// True when the prefix holds manifest.shw.
Result<bool> is_native(const Location& location);
// manifest: receives the bytes of the manifest, or null.
Result<std::shared_ptr<const OpenedCheckpoint>> open_native(const Location& location,
                                                            std::vector<std::byte>* manifest);
// By the bytes of a manifest that another rank has opened.
Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> manifest);

// Identity of the manifest that is current now, for conditional commits: version 0 and an empty
// generation when none. A manifest that is damaged exists with an empty generation: a save may
// replace it, and nothing that it named is removed. A manifest of a newer version is UNIMPLEMENTED.
struct CurrentManifest {
  bool exists = false;
  std::string generation;
  uint64_t version = 0;
  bool damaged = false;
  std::vector<std::string> kept_generations;

  bool names(std::string_view which) const;  // as its own generation or as one that is kept
};
Result<CurrentManifest> read_current(const Location& location);

// Generations that lie under the prefix, whether the manifest names them or not, with their newest
// modification. A temporary manifest that a crashed save left counts to its generation. DATA_LOSS
// when the manifest is damaged: nobody can say then which generation is named.
struct GenerationInfo {
  std::string generation;
  bool named = false;
  int64_t modified_ns = 0;
  uint64_t size_bytes = 0;
  std::vector<std::string>
      keys;  // storage keys (the prefix included) to remove when the generation goes
};
Result<std::vector<GenerationInfo>> list_generations(const Location& location);

}  // namespace shardwright::format::native
