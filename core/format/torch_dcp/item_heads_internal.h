// SPDX-License-Identifier: Apache-2.0
//
// ItemHeads: the first bytes of items that lie in one file, ascending by offset. Heads that are
// near to each other come by one read. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/storage/storage.h"

namespace shardwright::format::torch_dcp::internal {

class ItemHeads {
 public:
  // The items lie in the object; both outlive this.
  ItemHeads(storage::StorageObject& object, std::span<const ItemPlace> items)
      : object_(object), items_(items) {}
  // Of an item that does not come before the last one. Valid until the next call.
  Result<std::span<const std::byte>> at(size_t item);
  // Up to so many bytes of the file from an offset on, as far as at has read them; often none.
  std::span<const std::byte> read_before(uint64_t offset, uint64_t most_bytes) const;

 private:
  storage::StorageObject& object_;
  std::span<const ItemPlace> items_;
  std::vector<std::byte> bytes_;
  uint64_t begin_ = 0;  // of bytes_ in the file
};

}  // namespace shardwright::format::torch_dcp::internal
