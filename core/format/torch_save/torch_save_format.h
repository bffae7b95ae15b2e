// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save (.pt, .pth, .bin) as checkpoints of one rank, for a table: known by their
// first bytes, whatever their names are.
#pragma once

#include <memory>
#include <string_view>

#include "core/format/format.h"

namespace shardwright::format::torch_save {

inline constexpr std::string_view kFormatName = "torch-save";

std::unique_ptr<const Format> make_format();

}  // namespace shardwright::format::torch_save
