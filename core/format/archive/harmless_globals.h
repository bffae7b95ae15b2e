// SPDX-License-Identifier: Apache-2.0
//
// Globals of pickles that are known to make plain values and to run nothing that a pickle chooses:
// containers, dates, numbers, paths and streams of the standard library, arrays of numpy, and what
// torch's own weights-only loading takes. Immutable.
#pragma once

#include <span>
#include <string_view>

#include "core/format/archive/pickle_reader.h"

namespace shardwright::format::archive {

// Beside torch_vocabulary(): for read_pickle, and for lists of what is known.
std::span<const PickleClass> harmless_vocabulary();

// Whether the module has dtypes or storages under that name, which are values by themselves.
bool is_torch_value(std::string_view module, std::string_view name);

}  // namespace shardwright::format::archive
