// SPDX-License-Identifier: Apache-2.0
//
// Gate: closed until somebody opens it, then open for ever. Tests order their threads with gates,
// never with sleeps. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>

namespace shardwright::test {

class Gate {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  // Blocks until the gate is open.
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }
  bool is_open() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return open_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace shardwright::test
