// SPDX-License-Identifier: Apache-2.0
//
// Digest128: 128 bits of XXH3 in canonical big-endian byte order, equal on every machine. A value.
#pragma once

#include <array>
#include <cstddef>

namespace shardwright {

using Digest128 = std::array<std::byte, 16>;

}  // namespace shardwright
