// SPDX-License-Identifier: Apache-2.0
//
// RecordBytes: the bytes of a record, put together field by field, little-endian.
// Thread-compatible.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwright::format::archive::internal {

static_assert(std::endian::native == std::endian::little, "records are little-endian");

class RecordBytes {
 public:
  template <std::unsigned_integral T>
  RecordBytes& add(T value) {
    return add_bytes(std::as_bytes(std::span(&value, 1)));
  }
  RecordBytes& add_text(std::string_view text) { return add_bytes(std::as_bytes(std::span(text))); }
  RecordBytes& add_fill(size_t count, std::byte value) {
    bytes_.insert(bytes_.end(), count, value);
    return *this;
  }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  RecordBytes& add_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace shardwright::format::archive::internal
