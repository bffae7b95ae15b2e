// SPDX-License-Identifier: Apache-2.0
//
// A careless host of the C interface: numbers, arrays and structs by the choices of one input, and
// what must hold of each outcome. A pointer is NULL or an array of as many values as the struct
// says, because no library can check more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <shardwright/shardwright.h>

#include "tests/fuzz/byte_source.h"

namespace shardwright::fuzz {

constexpr size_t kMostValues = 8;  // of an array that a struct names

inline void check(bool holds) {
  if (!holds) __builtin_trap();
}

// What a call did: its error has a code, words and a known name.
inline void check_outcome(shw_status status, shw_error* error) {
  // A question for a size makes no error of its answer.
  check((status == SHW_OK || status == SHW_BUFFER_TOO_SMALL) || error != nullptr);
  check(status != SHW_OK || error == nullptr);
  check(std::string_view(shw_status_name(status)) != "UNRECOGNISED" && status != SHW_INTERNAL);
  if (error == nullptr) return;
  check(shw_error_code(error) == status && *shw_error_message(error, nullptr) != '\0');
  shw_error_release(error);
}

// Choices of one input, and the memory that its structs point to.
class Host {
 public:
  explicit Host(std::span<const std::byte> bytes) : source(bytes) {}

  // Small numbers mostly, sometimes those at the ends of their type.
  template <typename Integer>
  Integer number() {
    static constexpr std::array<uint64_t, 8> kRare = {
        UINT64_MAX,        uint64_t{1} << 63,       (uint64_t{1} << 63) - 1, uint64_t{1} << 62,
        uint64_t{1} << 32, (uint64_t{1} << 31) - 1, uint64_t{1} << 31,       uint64_t{1} << 40};
    const uint8_t first = source.byte();
    return static_cast<Integer>(first < 0xF0 ? first % 6 : kRare[first % 8]);
  }
  // NULL, or as many values as an array of a struct may have.
  template <typename Value>
  const Value* values(std::array<Value, kMostValues>* into) {
    if (source.rarely()) return nullptr;
    for (Value& each : *into) each = number<Value>();
    return into->data();
  }
  // Offsets that mostly begin with 0 and grow.
  const uint64_t* offsets(std::array<uint64_t, kMostValues>* into, uint64_t limit) {
    if (source.rarely()) return nullptr;
    uint64_t end = 0;
    for (uint64_t& each : *into) {
      each = source.rarely() ? limit - end % (limit + 1) : end;
      end = std::min<uint64_t>(limit, end + source.below(3));
    }
    return into->data();
  }
  // The size that the struct says, and what stands behind the struct that we know.
  template <typename Struct>
  Struct* sized(std::array<std::byte, 4096 + 64>* into, const Struct& value) {
    into->fill(std::byte{0});
    std::memcpy(into->data(), &value, sizeof(value));
    uint32_t size = sizeof(value);
    if (source.rarely()) size = number<uint32_t>() * 8;
    if (source.rarely()) size = sizeof(value) + 8;
    if (source.rarely()) (*into)[sizeof(value) + source.below(8)] = std::byte{1};
    std::memcpy(into->data(), &size, sizeof(size));
    return reinterpret_cast<Struct*>(into->data());
  }

  ByteSource source;
  alignas(64) std::array<std::byte, 4096 + 64> room{};
  std::array<int64_t, kMostValues> shape{}, strides{}, sizes{}, fragments{};
  std::array<uint64_t, kMostValues> name_offsets{}, shape_offsets{}, ranges{}, numbers{}, order{};
  std::array<int32_t, kMostValues> dtypes{}, kinds{}, places{};
  std::array<float, 64> data{};
};

constexpr std::string_view kNames = "abca.b.c\xC3\xA4\xFFzz";

// A count that the arrays of the host can hold.
inline int32_t held_count(Host* host) {
  const auto count = host->number<int32_t>();
  return count > static_cast<int32_t>(kMostValues) ? static_cast<int32_t>(kMostValues) : count;
}

}  // namespace shardwright::fuzz
