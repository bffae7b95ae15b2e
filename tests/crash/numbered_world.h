// SPDX-License-Identifier: Apache-2.0
//
// The worlds that writer and checker of the kill tests agree on by number alone.
#pragma once

#include "tests/core/exec/save_world.h"

namespace shardwright::exec::test {

// Every third one is large enough that writing it takes a while.
inline World numbered_world(int32_t ranks, uint64_t number) {
  return number % 3 == 0 ? make_world(ranks, number) : make_small_world(ranks, number);
}

}  // namespace shardwright::exec::test
