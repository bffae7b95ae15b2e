// SPDX-License-Identifier: Apache-2.0
//
// The quarantine is a ring of fixed size; its memory stays reachable until the process ends.
#include "capi/boundary/handle.h"

#include <array>
#include <mutex>

namespace shardwright::capi {
namespace {

constexpr size_t kQuarantineSize = 1024;

struct Parked {
  void* memory = nullptr;
  void (*destroy)(void*) = nullptr;
};

constinit std::mutex quarantine_mutex;
constinit std::array<Parked, kQuarantineSize> parked{};
constinit size_t next_slot = 0;

}  // namespace

void quarantine(void* memory, void (*destroy)(void*)) noexcept {
  Parked oldest;
  {
    const std::lock_guard<std::mutex> lock(quarantine_mutex);
    oldest = std::exchange(parked[next_slot], Parked{memory, destroy});
    next_slot = (next_slot + 1) % kQuarantineSize;
  }
  if (oldest.memory != nullptr) oldest.destroy(oldest.memory);
}

}  // namespace shardwright::capi
