// SPDX-License-Identifier: Apache-2.0
//
// Bytes in memory, copied and wiped as a whole. std::ranges::copy and std::ranges::fill of spans
// move one byte at a time in some standard libraries (libstdc++ 12). Pure, any thread.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace shardwright {

// `to` has room for `from` and does not overlap it. Returns the room behind the copy.
inline std::span<std::byte> copy_bytes(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  return to.subspan(from.size());
}

inline void zero_bytes(std::span<std::byte> memory) {
  if (!memory.empty()) std::memset(memory.data(), 0, memory.size());
}

}  // namespace shardwright
