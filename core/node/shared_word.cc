// SPDX-License-Identifier: Apache-2.0
//
// A futex without the flag for one process.
#include "core/node/shared_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace shardwright::node {

void wait_for_change(SharedWord& word, uint32_t value, int64_t timeout_ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec timeout{timeout_ns / kSecond, static_cast<long>(timeout_ns % kSecond)};
  (void)::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void wake_all(SharedWord& word) {
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace shardwright::node
