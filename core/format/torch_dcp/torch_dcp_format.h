// SPDX-License-Identifier: Apache-2.0
//
// The format of torch.distributed.checkpoint for a table. It keeps what it opened: kept_openings.h.
#pragma once

#include <memory>

#include "core/concurrency/cancellation.h"
#include "core/format/format.h"

namespace shardwright::format::torch_dcp {

std::unique_ptr<const Format> make_format(const Clock& clock);

}  // namespace shardwright::format::torch_dcp
