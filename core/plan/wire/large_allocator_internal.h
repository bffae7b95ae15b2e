// SPDX-License-Identifier: Apache-2.0
//
// Memory of FlatBuffers builders: large plans lie in large pages, or where they will stay.
#pragma once

#include <flatbuffers/flatbuffer_builder.h>

#include <cstddef>
#include <span>

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

// Memory of one builder that lies where its bytes are wanted. A builder that needs more gets its
// own.
class LentMemory : public flatbuffers::DefaultAllocator {
 public:
  explicit LentMemory(std::span<std::byte> memory) : memory_(memory) {}

  uint8_t* allocate(size_t size) override {
    if (lent_ || size > memory_.size()) return flatbuffers::DefaultAllocator::allocate(size);
    lent_ = true;
    return reinterpret_cast<uint8_t*>(memory_.data());
  }
  void deallocate(uint8_t* memory, size_t size) override {
    if (memory != reinterpret_cast<uint8_t*>(memory_.data()))
      flatbuffers::DefaultAllocator::deallocate(memory, size);
  }

 private:
  std::span<std::byte> memory_;
  bool lent_ = false;
};

}  // namespace shardwright::plan::internal
