// SPDX-License-Identifier: Apache-2.0
//
// The tensors and objects of a directory that Megatron-core's zarr backend wrote, as an opened
// checkpoint. It is only read to be saved again: an array has as many files as the job had shards,
// none of them has a digest, and nothing says whether all are of one save.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::megatron {

// The failures of read_zarr_contents. common.pt and metadata.json are read by others.
Result<std::shared_ptr<const OpenedCheckpoint>> open_zarr(const Location& location);

}  // namespace shardwright::format::megatron
