// SPDX-License-Identifier: Apache-2.0
//
// Views of local plans straight from their buffers: columns are read in place where their alignment
// allows, tables that ranks share are decoded and proved once. Pure function.
#pragma once

#include <cstddef>
#include <span>

#include "core/plan/local_view.h"

namespace shardwright::plan {

// The local plans of all ranks, in rank order, through all doors of decode_local_save; a plan of
// unknown world size takes its place as its rank. The buffers must outlive the views. Failures are those of decode_local_save and name the rank.
Result<LocalViews> open_local_saves(std::span<const std::span<const std::byte>> buffers);

}  // namespace shardwright::plan
