// SPDX-License-Identifier: Apache-2.0
//
// What the sources of Exchange share: the header in front of what travels, and the barrier round a
// step. One thread at a time, as an exchange.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "core/base/without_exceptions.h"
#include "core/collective/exchange.h"

namespace shardwright::collective {
namespace internal {

static_assert(std::endian::native == std::endian::little, "headers travel in little-endian order");

// Of the step, with the number that its call has.
struct Header {
  uint64_t sequence = 0;
  uint32_t tag = 0;
  uint32_t reserved0 = 0;
};
static_assert(sizeof(Header) == Exchange::kHeaderBytes);

// Sizes of all ranks as positions in one buffer. INTERNAL when memory cannot have so many bytes.
Result<size_t> total_bytes(std::span<const uint64_t> sizes);

}  // namespace internal

template <typename Step>
auto Exchange::whole(const Step& step) noexcept -> decltype(step()) {
  try {
    return step();
  } catch (...) {
    return break_off(failure_of_exception("an exchange between ranks"));
  }
}

}  // namespace shardwright::collective
