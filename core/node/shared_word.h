// SPDX-License-Identifier: Apache-2.0
//
// A word in shared memory by which processes wait for each other. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace shardwright::node {

using SharedWord = std::atomic<uint32_t>;
static_assert(SharedWord::is_always_lock_free);

// Returns when the word is not `value` any more, when it is woken, at the latest after that time;
// the caller looks what it is.
void wait_for_change(SharedWord& word, uint32_t value, int64_t timeout_ns);
void wake_all(SharedWord& word);

}  // namespace shardwright::node
