// SPDX-License-Identifier: Apache-2.0
//
// Long copies that do not wash out the caches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardwright {

// memcpy of bytes that are read again much later, if at all: long runs go round the caches, which
// then need not fetch what is overwritten: a third of the traffic. Any thread; the two do not
// overlap.
void stream_copy(std::byte* to, const std::byte* from, uint64_t bytes);

}  // namespace shardwright
