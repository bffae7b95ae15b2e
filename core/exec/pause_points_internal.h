// SPDX-License-Identifier: Apache-2.0
//
// Pause points: named places of a save at which kill tests stop the writer. Compiled in only where
// SHW_TEST_HOOKS is defined: then SHW_TEST_PAUSE_AT=<name> makes the process create the file named
// by SHW_TEST_PAUSE_FILE at that place and wait for its end. Elsewhere a pause point is nothing.
#pragma once

#include <string_view>

namespace shardwright::exec::internal {

#if defined(SHW_TEST_HOOKS)
void pause_point(std::string_view name);
#else
inline void pause_point(std::string_view) {}
#endif

}  // namespace shardwright::exec::internal
