// SPDX-License-Identifier: Apache-2.0
//
// A file of torch.save as an opened checkpoint.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/format/opened_checkpoint.h"

namespace shardwright::format::torch_save {

// bytes: receives what open_shared takes, or null. Failures as of Format::open.
Result<std::shared_ptr<const OpenedCheckpoint>> open_file(const Location& location,
                                                          std::vector<std::byte>* bytes);
Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes);

}  // namespace shardwright::format::torch_save
