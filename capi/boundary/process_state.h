// SPDX-License-Identifier: Apache-2.0
//
// What the boundary knows about process and thread: whether this is a forked child, and whether the
// thread is inside a callback of the host. Any thread.
#pragma once

namespace shardwright::capi {

// True in a child that was forked after this library had been used. One load: the word lies in a
// page that the kernel zeroes on fork, or is cleared by a fork handler where that is refused.
bool in_forked_child() noexcept;

// While one lives, the thread runs a host function, and calls that are not callback-safe are
// refused.
class CallbackScope {
 public:
  CallbackScope() noexcept;
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
};
bool in_callback() noexcept;

}  // namespace shardwright::capi
