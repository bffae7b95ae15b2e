// SPDX-License-Identifier: Apache-2.0
//
// ContentSource: where the packed bytes of what a rank writes come from, when they do not lie in
// the memory of its state. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/status.h"

namespace shardwright::exec::internal {

// A run of the packed bytes of an item, and where it is wanted.
struct WantedRun {
  uint32_t item = 0;   // number in the write list
  uint64_t begin = 0;  // in the item's bytes
  std::span<std::byte> to;
};

class ContentSource {
 public:
  virtual ~ContentSource() = default;
  virtual Status read(std::span<const WantedRun> runs) = 0;
  // Whether a digest block of an item costs as much when a part of it is read.
  virtual bool comes_in_blocks() const = 0;
};

}  // namespace shardwright::exec::internal
