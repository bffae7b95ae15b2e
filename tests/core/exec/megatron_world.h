// SPDX-License-Identifier: Apache-2.0
//
// Worlds with a common state, and what somebody finds of them who knows Megatron's files alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tests/core/exec/save_world.h"

namespace shardwright::exec::test {

// A small world (save_world.h) and a tensor of the common state, both of the number alone.
World make_megatron_world(int32_t world_size, uint64_t number);

// What Megatron-core would open, which knows neither journal nor names of generations, is one of
// the worlds; or there is no metadata.json, so that it opens nothing.
testing::AssertionResult megatron_finds_none_or(Runtime& runtime, const format::Location& location,
                                                std::span<const World* const> worlds);
// The same, and metadata.json is there.
testing::AssertionResult megatron_finds(Runtime& runtime, const format::Location& location,
                                        const World& world);

}  // namespace shardwright::exec::test
