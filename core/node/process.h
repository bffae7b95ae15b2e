// SPDX-License-Identifier: Apache-2.0
//
// Processes of one machine: which can name each other by number, and whether one is still there.
// Any thread.
#pragma once

#include <cstdint>

#include "core/base/digest128.h"
#include "core/base/result.h"

namespace shardwright::node {

// Equal for processes of one boot, one user and one space of process numbers that share by the same
// rules. UNIMPLEMENTED where the system does not say what these are.
Result<Digest128> neighbourhood(uint32_t rules);
// Random; the system's failure to give it.
Result<Digest128> random_mark();

// A process that is watched from now on; its number may go to another one later.
class ProcessWatch {
 public:
  explicit ProcessWatch(int32_t process);
  ~ProcessWatch();
  ProcessWatch(ProcessWatch&& other) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) = delete;
  // Whether its end can be seen: it is there and the system has a way, or it has ended before.
  bool is_watched() const { return descriptor_ >= 0 || was_gone_; }
  bool has_ended() const;

 private:
  int descriptor_ = -1;
  bool was_gone_ = false;
};

}  // namespace shardwright::node
