// SPDX-License-Identifier: Apache-2.0
//
// DerivedItems: chunks and byte objects of which no file holds the packed bytes that a reader
// wants: strided views, whose elements lie apart or in another order, and values that stand inside
// of something else. Together they are one file that does not exist
// (OpenedCheckpoint::derived_file): each item has a range of it, and what is read there is gathered
// from the stored files or taken from memory. Filled by one thread, then immutable; what it opens
// is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/storage/storage.h"
#include "core/tensor/dims.h"

namespace shardwright::format {

// Elements of a stored file: (i0, i1, ...) begins at offset + sum(ik * strides[k]) * element_bytes.
// Strides are not negative and may be 0.
struct StridedSource {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t element_bytes = 1;
  Dims shape;
  Dims strides;      // in elements
  uint32_t crc = 0;  // CRC-32 of all bytes from the first to the last element; 0 = not known
};

// Whether the elements lie packed in row-major order.
bool is_packed(std::span<const int64_t> shape, std::span<const int64_t> strides);
// Elements from the first to the last one that a view has, both included; 0 when it has none.
// INVALID_ARGUMENT for negative numbers or a count beyond what can be counted.
Result<uint64_t> elements_spanned(std::span<const int64_t> shape, std::span<const int64_t> strides);

class DerivedItems {
 public:
  using OpenFile = std::function<Result<std::unique_ptr<storage::StorageObject>>(uint32_t file)>;

  // Offset of the item in the derived file. Bytes are copied.
  uint64_t add_bytes(std::span<const std::byte> bytes);
  // Of elements that were checked by elements_spanned and lie in their file. The item has so many
  // bytes as its elements.
  uint64_t add_strided(StridedSource source);

  uint64_t size_bytes() const { return next_; }
  // The derived file, to be read; the items outlive it. name: for messages. Failures of opening and
  // reading the stored files come with the first read; DATA_LOSS when what a view spans is read as
  // a whole and has another checksum.
  std::unique_ptr<storage::StorageObject> open(OpenFile open_file, std::string name) const;

 private:
  friend class DerivedObject;
  struct Item {
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
    size_t number = 0;  // of the bytes in memory, or of the source
    bool is_strided = false;
  };
  const Item& item_at(uint64_t offset) const;

  std::vector<Item> items_;  // ascending, without gaps; empty ones are left out
  std::vector<std::byte> memory_;
  std::vector<StridedSource> sources_;
  uint64_t next_ = 0;
};

}  // namespace shardwright::format
