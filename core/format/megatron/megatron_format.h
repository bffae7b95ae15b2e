// SPDX-License-Identifier: Apache-2.0
//
// Directories of Megatron-core's dist_checkpointing (torch_dist), for a table: known by
// metadata.json. Without that file they are what torch.distributed.checkpoint wrote.
#pragma once

#include <memory>
#include <string_view>

#include "core/concurrency/cancellation.h"
#include "core/format/format.h"

namespace shardwright::format::megatron {

inline constexpr std::string_view kFormatName = "megatron";

std::unique_ptr<const Format> make_format(const Clock& clock);

}  // namespace shardwright::format::megatron
