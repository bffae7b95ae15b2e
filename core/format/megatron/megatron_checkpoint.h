// SPDX-License-Identifier: Apache-2.0
//
// A directory of Megatron-core as an opened checkpoint: what torch.distributed.checkpoint stores
// (tensors, sharded objects), and behind it the entries of common.pt under the name "common". Both
// are read as data; nothing of a pickle is run.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/torch_dcp/kept_openings.h"

namespace shardwright::format::megatron {

// kept: as of torch_dcp::open_directory, not null; bytes: receives what open_shared takes, or null.
// DATA_LOSS naming the file that is damaged or not there; UNIMPLEMENTED for other backends and
// newer versions; PERMISSION_DENIED (unsafe) for a pickle that would call something.
Result<std::shared_ptr<const OpenedCheckpoint>> open_directory(const Location& location,
                                                               torch_dcp::KeptOpenings* kept,
                                                               std::vector<std::byte>* bytes);
// The same, and directories of the zarr backend (zarr_checkpoint.h) as well.
Result<std::shared_ptr<const OpenedCheckpoint>> open_to_convert(const Location& location,
                                                                torch_dcp::KeptOpenings* kept);
// What another rank opened; nothing is read.
Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes);

}  // namespace shardwright::format::megatron
