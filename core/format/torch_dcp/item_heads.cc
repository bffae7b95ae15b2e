// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/format/torch_dcp/item_heads_internal.h"
#include "core/format/torch_dcp/tensor_item.h"

namespace shardwright::format::torch_dcp::internal {
namespace {

constexpr uint64_t kReadBytes = uint64_t{256} << 10;  // of several heads
constexpr uint64_t kGapBytes = 16 * kItemHeadBytes;   // between them

uint64_t end_of_head(const ItemPlace& item) {
  return item.offset + std::min(item.size_bytes, kItemHeadBytes);
}

}  // namespace

Result<std::span<const std::byte>> ItemHeads::at(size_t item) {
  const ItemPlace& place = items_[item];
  const uint64_t end = end_of_head(place);
  if (place.offset < begin_ || end > begin_ + bytes_.size()) {
    uint64_t until = end;
    for (size_t next = item + 1; next < items_.size(); ++next) {
      const uint64_t next_end = end_of_head(items_[next]);
      if (items_[next].offset > until + kGapBytes || next_end > place.offset + kReadBytes) break;
      until = std::max(until, next_end);
    }
    bytes_.resize(static_cast<size_t>(until - place.offset));
    begin_ = place.offset;
    SHW_RETURN_IF_ERROR(object_.read_at(begin_, bytes_));
  }
  return std::span<const std::byte>(bytes_).subspan(static_cast<size_t>(place.offset - begin_),
                                                    static_cast<size_t>(end - place.offset));
}

std::span<const std::byte> ItemHeads::read_before(uint64_t offset, uint64_t most_bytes) const {
  if (offset < begin_ || offset - begin_ >= bytes_.size()) return {};
  const auto from =
      std::span<const std::byte>(bytes_).subspan(static_cast<size_t>(offset - begin_));
  return from.first(static_cast<size_t>(std::min<uint64_t>(from.size(), most_bytes)));
}

}  // namespace shardwright::format::torch_dcp::internal
