// SPDX-License-Identifier: Apache-2.0
//
// Generations on a storage: drawing a name for a new one, and removing one with all that is in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/exec/runtime.h"
#include "core/format/format.h"

namespace shardwright::exec::internal {

// 32 lower-case hex digits: 48 bits of milliseconds since 1970, then 80 random bits. Later ones
// sort behind earlier ones.
Result<std::string> draw_generation(Runtime& runtime);

// Removes every object of the generation and its prefix; bytes that went. The first failure is
// returned after everything was tried. The caller knows that nobody names or writes it.
Result<uint64_t> remove_generation(const format::Location& location, std::string_view generation);

// Key prefix of the generation.
std::string generation_key(const format::Location& location, std::string_view generation);

}  // namespace shardwright::exec::internal
