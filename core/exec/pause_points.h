// SPDX-License-Identifier: Apache-2.0
//
// Pause points: named places of a save at which kill tests stop the writer. They are compiled in only
// where SHW_TEST_HOOKS is defined, by a test that brings its own pause_point; elsewhere they are
// nothing.
#pragma once

#include <string_view>

namespace shardwright::exec::internal {

#if defined(SHW_TEST_HOOKS)
void pause_point(std::string_view name);
#else
inline void pause_point(std::string_view) {}
#endif

}  // namespace shardwright::exec::internal
