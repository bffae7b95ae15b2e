// SPDX-License-Identifier: Apache-2.0
//
// Where what a rank writes lies in its file. From kFileHeaderBytes on: chunks and
// objects of kSlabChunkLimitBytes and more, each at a multiple of kExtentAlignmentBytes; then
// smaller chunks, packed at multiples of kSlabAlignmentBytes, so that one read gets many; then
// small objects likewise. Each part is in the order of the list, so that a whole tensor is read in
// ascending positions. Pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/format/saving.h"
#include "core/plan/save_plan.h"

namespace shardwright::format::native {

// Of the layout the items and data_bytes. RESOURCE_EXHAUSTED for a file of more than 2^62 bytes.
Result<FileLayout> lay_out(std::span<const plan::WriteItem> items);

}  // namespace shardwright::format::native
