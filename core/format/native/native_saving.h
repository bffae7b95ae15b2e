// SPDX-License-Identifier: Apache-2.0
//
// Saving native checkpoints: one file per rank in a prefix of the generation, the manifest names
// them. Immutable, any thread.
#pragma once

#include "core/format/saving.h"

namespace shardwright::format::native {

const FormatWriter& native_writer();

}  // namespace shardwright::format::native
