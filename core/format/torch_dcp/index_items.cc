// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/index_items.h"

#include <algorithm>
#include <tuple>

#include "core/base/limits.h"
#include "core/format/torch_dcp/transformed_item.h"

namespace shardwright::format::torch_dcp {

std::vector<IndexItem> items_of(const DcpIndex& index) {
  std::vector<IndexItem> items;
  items.reserve(index.objects.size() + index.places.size());
  for (const DcpIndex::Object& object : index.objects)
    items.push_back({object.place, object.name, kMaxObjectBytes});
  for (const DcpIndex::Tensor& tensor : index.tensors) {
    for (uint64_t i = 0; i < tensor.chunk_count; ++i) {
      items.push_back({index.places[tensor.chunk_begin + i], tensor.name,
                       most_archive_bytes(chunk_bytes(index, tensor, i))});
    }
  }
  std::ranges::sort(items, {}, [](const IndexItem& item) {
    return std::tuple(item.place.file, item.place.offset, item.entry);
  });
  return items;
}

}  // namespace shardwright::format::torch_dcp
