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

// What wrote the sharded data. kZarr (up to 0.14) is read by conversions alone.
enum class Backend : uint8_t { kTorchDist, kZarr };

struct MarkerFile {
  bool has_common_file = false;
  Backend backend = Backend::kTorchDist;
};

// The text as the original writes it for torch_dist.
std::string_view marker_text(const MarkerFile& marker);

// DATA_LOSS for what is no such text; UNIMPLEMENTED for other backends and newer versions, naming
// what to do. Keys that are not known are passed over.
Result<MarkerFile> decode_marker(std::span<const std::byte> bytes);
// UNIMPLEMENTED, naming what to do, where the backend is read by conversions alone.
Status check_readable(const MarkerFile& marker);

}  // namespace shardwright::format::megatron
