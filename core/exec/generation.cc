// SPDX-License-Identifier: Apache-2.0
//
// Names of generations.
#include <algorithm>

#include "core/base/text.h"
#include "core/exec/generation_internal.h"

namespace shardwright::exec::internal {

Result<std::string> draw_generation(Runtime& runtime) {
  SHW_ASSIGN_OR_RETURN(auto bytes, runtime.random_bytes());
  constexpr size_t kTimeBytes = 6;
  const auto milliseconds =
      static_cast<uint64_t>(std::max<int64_t>(runtime.clock().unix_ns(), 0) / 1'000'000);
  for (size_t i = 0; i < kTimeBytes; ++i)
    bytes[i] = static_cast<std::byte>(milliseconds >> (8 * (kTimeBytes - 1 - i)) & 0xFF);
  return to_hex(bytes);
}

}  // namespace shardwright::exec::internal
