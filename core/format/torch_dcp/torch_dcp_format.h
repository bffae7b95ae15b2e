// SPDX-License-Identifier: Apache-2.0
//
// The format of torch.distributed.checkpoint for a table.
#pragma once

#include <memory>

#include "core/format/format.h"

namespace shardwright::format::torch_dcp {

std::unique_ptr<const Format> make_format();

}  // namespace shardwright::format::torch_dcp
