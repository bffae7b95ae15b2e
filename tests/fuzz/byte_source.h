// SPDX-License-Identifier: Apache-2.0
//
// ByteSource: the input of a fuzz target as a row of small choices, so that a mutation changes one
// of them. An input that has ended goes on with zeros. One thread; views the input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace shardwright::fuzz {

class ByteSource {
 public:
  explicit ByteSource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<uint8_t>(bytes_[0]);
    bytes_ = bytes_.subspan(1);
    return value;
  }
  // From 0 to end - 1; of one byte, or of two when end is larger than 256. end is at least 1.
  template <typename Integer>
  Integer below(Integer end) {
    uint64_t value = byte();
    if (static_cast<uint64_t>(end) > 256) value = value * 256 + byte();
    return static_cast<Integer>(value % static_cast<uint64_t>(end));
  }
  // One of 256 byte values: what mutations reach and most inputs do not have.
  bool rarely() { return byte() == 0xFF; }
  bool ended() const { return bytes_.empty(); }
  // A length of two bytes and as many bytes, or what is left of them.
  std::span<const std::byte> block() {
    const size_t size = std::min(below<size_t>(0x10000), bytes_.size());
    const std::span<const std::byte> taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
};

// The buffer with the size prefix and the identifier of a plan.
inline std::vector<std::byte> with_plan_frame(std::span<const std::byte> bytes) {
  std::vector<std::byte> framed(bytes.begin(), bytes.end());
  if (framed.size() < 12) return framed;
  const auto length = static_cast<uint32_t>(framed.size() - 4);
  std::memcpy(framed.data(), &length, sizeof(length));
  std::memcpy(framed.data() + 8, "SHWP", 4);
  return framed;
}

// Changes up to seven bytes behind the frame.
inline void damage(ByteSource* source, std::vector<std::byte>* buffer) {
  constexpr size_t kFrame = 12;
  const int flips = source->below(8);
  for (int i = 0; i < flips && buffer->size() > kFrame; ++i) {
    const size_t at = kFrame + source->below<size_t>(0x10000) % (buffer->size() - kFrame);
    (*buffer)[at] ^= std::byte{source->byte()};
  }
}

}  // namespace shardwright::fuzz
