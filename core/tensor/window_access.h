// SPDX-License-Identifier: Apache-2.0
//
// WindowAccess: how the host copies the bytes of tensors that lie in memory which it cannot touch.
// Whoever lends such memory brings one; who saves and loads needs to know no more of it. Calls come
// from any thread, several at once, also for one tensor (for different bytes where they write), and
// return when the bytes are there. What was written by a call that failed is undefined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/status.h"
#include "core/tensor/strided_window.h"

namespace shardwright {

class WindowAccess {
 public:
  virtual ~WindowAccess() = default;
  // Of the device; for messages.
  virtual std::string_view name() const = 0;
  // Copies bytes [begin, begin + to.size()) of the window's row-major byte run. begin may fall
  // inside an element.
  virtual Status gather(const StridedWindow& from, uint64_t begin, std::span<std::byte> to) = 0;
  // The reverse; touches no other bytes of the window.
  virtual Status scatter(std::span<const std::byte> from, const StridedWindow& to,
                         uint64_t begin) = 0;
};

}  // namespace shardwright
