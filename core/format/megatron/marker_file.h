// SPDX-License-Identifier: Apache-2.0
//
// metadata.json, which says that a directory is a checkpoint of Megatron-core's dist_checkpointing
// and which backends wrote it. It is written last, so it also says that the rest is whole.
//
//   {"sharded_backend": "torch_dist", "sharded_backend_version": 1,
//    "common_backend": "torch", "common_backend_version": 1}
//
// The last two stand there when the common state is the file common.pt (megatron-core up to 0.16);
// later writers keep it among the sharded data. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/result.h"

namespace shardwright::format::megatron {

inline constexpr std::string_view kMarkerName = "metadata.json";
inline constexpr std::string_view kCommonName = "common.pt";
inline constexpr uint64_t kMaxMarkerBytes = uint64_t{64} << 10;

struct MarkerFile {
  bool has_common_file = false;
};

// The text as the original writes it.
std::string_view marker_text(const MarkerFile& marker);

// DATA_LOSS for what is no such text; UNIMPLEMENTED for other backends and newer versions, naming
// what to do. Keys that are not known are passed over.
Result<MarkerFile> decode_marker(std::span<const std::byte> bytes);

}  // namespace shardwright::format::megatron
