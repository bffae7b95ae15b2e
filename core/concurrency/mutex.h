// SPDX-License-Identifier: Apache-2.0
//
// Mutex, MutexLock and Condition: the standard ones with the annotations that clang's thread-safety
// analysis needs. Every class whose members several threads share guards them with these.
// Thread-safe; neither copied nor moved.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "core/base/thread_annotations.h"

namespace shardwright {

class SHW_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() SHW_ACQUIRE() { mutex_.lock(); }
  void unlock() SHW_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

// Holds a mutex for a scope.
class SHW_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SHW_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SHW_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waiting for a change of what a mutex guards. Wake-ups may be spurious: callers test in a loop.
class Condition {
 public:
  // Releases the mutex, waits to be notified, takes it again.
  void wait(Mutex& mutex) SHW_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // The same for at most timeout_ns, or an hour where that is longer: the clock must be able to
  // show the end. False when the time passed without a notification.
  bool wait_for(Mutex& mutex, int64_t timeout_ns) SHW_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const auto outcome = condition_.wait_for(
        lock, std::chrono::nanoseconds(std::min<int64_t>(timeout_ns, kLongestWaitNs)));
    lock.release();
    return outcome == std::cv_status::no_timeout;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  static constexpr int64_t kLongestWaitNs = int64_t{3600} * 1'000'000'000;

  std::condition_variable condition_;
};

}  // namespace shardwright
