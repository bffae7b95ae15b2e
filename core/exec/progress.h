// SPDX-License-Identifier: Apache-2.0
//
// Progress: a snapshot that any thread may poll while a save or load runs. Values never decrease
// within a stage list. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace shardwright::exec {

// Stages in order; numbers are those of the C surface.
enum class Stage : int32_t {
  kQueued = 0,
  kPlanning = 1,
  kStaging = 2,
  kWriting = 3,
  kCommitting = 4,
  kReading = 5,
  kDone = 6
};

struct Progress {
  std::atomic<int32_t> stage{0};
  std::atomic<uint64_t> bytes_done{0};
  std::atomic<uint64_t> bytes_total{0};
  std::atomic<uint64_t> items_done{0};
  std::atomic<uint64_t> items_total{0};

  void enter(Stage next) {
    int32_t seen = stage.load();
    while (seen < static_cast<int32_t>(next) &&
           !stage.compare_exchange_weak(seen, static_cast<int32_t>(next))) {
    }
  }
};

}  // namespace shardwright::exec
