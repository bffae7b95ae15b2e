// SPDX-License-Identifier: Apache-2.0
#include "core/exec/scatter_writer_internal.h"

#include <algorithm>

namespace shardwright::exec::internal {
namespace {

// Where run `number` begins, relative to the item.
uint64_t run_offset(const format::Scatter& scatter, uint64_t number) {
  uint64_t offset = 0;
  for (size_t l = scatter.loops.size(); l-- > 0;) {
    offset += number % scatter.loops[l].count * scatter.loops[l].stride_bytes;
    number /= scatter.loops[l].count;
  }
  return offset;
}

}  // namespace

Status write_scattered(storage::StorageObject& object, const format::FileLayout& layout,
                       const WriteTask& task, std::span<const std::byte> bytes) {
  const format::PlacedItem& item = layout.items[task.first_item];
  const format::Scatter& scatter = layout.scatters[item.scatter];
  for (uint64_t begin = task.begin; begin < task.end;) {
    const uint64_t inside = begin % scatter.run_bytes;
    const uint64_t size = std::min(scatter.run_bytes - inside, task.end - begin);
    const uint64_t position =
        item.position + run_offset(scatter, begin / scatter.run_bytes) + inside;
    SHW_RETURN_IF_ERROR(object.write_at(
        position,
        bytes.subspan(static_cast<size_t>(begin - task.begin), static_cast<size_t>(size))));
    begin += size;
  }
  return {};
}

}  // namespace shardwright::exec::internal
