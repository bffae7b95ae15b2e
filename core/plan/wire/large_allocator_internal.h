// SPDX-License-Identifier: Apache-2.0
//
// LargeAllocator: memory of FlatBuffers builders; large plans lie in large pages.
#pragma once

#include <flatbuffers/flatbuffer_builder.h>

#include "core/base/huge_pages.h"

namespace shardwright::plan::internal {

class LargeAllocator : public flatbuffers::DefaultAllocator {
 public:
  uint8_t* allocate(size_t size) override {
    uint8_t* memory = flatbuffers::DefaultAllocator::allocate(size);
    advise_huge_pages(memory, size);
    return memory;
  }
};

}  // namespace shardwright::plan::internal
