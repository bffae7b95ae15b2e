// SPDX-License-Identifier: Apache-2.0
//
// ChunkFinder: from a name and an offset to the place of a chunk or object in an index that is
// being filled. Constant time where entries come in the order of their chunks or with a hint that
// is right, O(log chunks) otherwise. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/hash_index.h"
#include "core/base/status.h"
#include "core/format/torch_dcp/dcp_index.h"

namespace shardwright::format::torch_dcp::internal {

class ChunkFinder {
 public:
  // After all tensors and objects are in the index. DATA_LOSS for a name that comes twice.
  Status index_names(const DcpIndex& index);
  // Null when the index has no such item. offset: null for objects and for the only chunk of a
  // tensor; hint: number of the chunk, -1 = none.
  ItemPlace* find(DcpIndex* index, std::string_view name, const Dims* offset, int64_t hint);
  // Where the path of the entry belongs, or null.
  std::string* path_of(DcpIndex* index, std::string_view name);

 private:
  static constexpr uint32_t kNone = 0xFFFFFFFF;

  // Number of the entry: of tensors, then of objects.
  uint32_t entry_of(const DcpIndex& index, std::string_view name);
  ItemPlace* find_chunk(DcpIndex* index, uint32_t tensor, const Dims& offset, int64_t hint);
  uint64_t search(const DcpIndex& index, uint32_t tensor, const Dims& offset);

  HashIndex names_;
  std::vector<uint64_t> next_;  // of each tensor the chunk that is expected
  std::unordered_map<uint32_t, std::vector<uint32_t>> by_offset_;  // chunks of a tensor, sorted
  uint32_t last_ = kNone;  // entry of the last search: names come in runs
};

}  // namespace shardwright::format::torch_dcp::internal
