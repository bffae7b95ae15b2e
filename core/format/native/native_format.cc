// SPDX-License-Identifier: Apache-2.0
//
// Names of the native format. Pure functions, any thread.
#include "core/format/native/native_format.h"

#include <fmt/format.h>

namespace shardwright::format::native {

std::string rank_file_name(int32_t rank) {
  return fmt::format("rank-{:05d}.shw", rank);
}

std::string rank_file_key(std::string_view generation, int32_t rank) {
  return fmt::format("{}/{}", generation, rank_file_name(rank));
}

std::string temporary_manifest_name(std::string_view generation) {
  return fmt::format("{}.{}", kManifestName, generation);
}

}  // namespace shardwright::format::native
