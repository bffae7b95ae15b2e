// SPDX-License-Identifier: Apache-2.0
#include "core/concurrency/mutex.h"

#include <cstdint>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

struct Waiting {
  Mutex mutex;
  Condition changed;
  bool waits SHW_GUARDED_BY(mutex) = false;
};

TEST(Condition, WaitsForANotificationHoweverLongTheTime) {
  Waiting waiting;
  bool notified = false;
  std::thread waiter([&] {
    const MutexLock lock(waiting.mutex);
    waiting.waits = true;
    notified = waiting.changed.wait_for(waiting.mutex, std::numeric_limits<int64_t>::max());
  });
  for (bool told = false; !told;) {
    const MutexLock lock(waiting.mutex);
    told = waiting.waits;  // under the mutex: it waits, or has ended
    if (told) waiting.changed.notify_all();
  }
  waiter.join();
  EXPECT_TRUE(notified);
}

TEST(Condition, SaysThatTheTimeHasPassed) {
  Waiting waiting;
  const MutexLock lock(waiting.mutex);
  while (waiting.changed.wait_for(waiting.mutex, 1)) {
  }
}

}  // namespace
}  // namespace shardwright
