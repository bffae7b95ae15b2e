// SPDX-License-Identifier: Apache-2.0
//
// Saving directories that Megatron-core loads: data and index as in torch DCP, the entries under
// "common" in common.pt, metadata.json. The commit is the journal of publication.h.
#pragma once

#include "core/format/saving.h"

namespace shardwright::format::megatron {

const FormatWriter& megatron_writer();

}  // namespace shardwright::format::megatron
