// SPDX-License-Identifier: Apache-2.0
//
// How much memory the system lets the processes of this one's control groups (cgroup 1 or 2) have
// besides what they have: beyond it processes are killed. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace shardwright {

inline constexpr uint64_t kNoMemoryLimit = UINT64_MAX;

// The least of all groups above this process; pages of files, which the system can take back, do
// not count as used. kNoMemoryLimit where there is no limit or the system does not say.
uint64_t memory_left_bytes();
// The same with the files of another system: root stands for "/".
uint64_t memory_left_bytes(const std::string& root);

}  // namespace shardwright
