// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_row.h"

#include <algorithm>

#include "core/format/archive/pickle_scan.h"

namespace shardwright::format::archive {
namespace {

constexpr uint64_t kFirstReadBytes = uint64_t{1} << 20;
constexpr uint64_t kReadGrowth = 8;
constexpr uint64_t kNearTheEnd = 16;  // a pickle that ends there may go on

// As many as there are in what was read.
void find_pickles(std::string_view file, PickleRow* row) {
  row->begins = {0};
  row->is_whole = true;
  while (row->size() < kMaxPicklesInARow && row->is_whole) {
    const auto rest = std::span<const std::byte>(row->head).subspan(row->begins.back());
    if (row->size() > 0 && !is_marked_pickle(rest)) return;
    const PickleScan scan = scan_pickle(rest, file);
    if (row->size() == 0) row->names_something = !scan.imports.empty();
    row->begins.push_back(row->begins.back() + scan.end);
    row->is_whole = scan.ended.ok();
  }
}

}  // namespace

bool is_marked_pickle(std::span<const std::byte> head) {
  return head.size() >= 2 && head[0] == std::byte{0x80} && head[1] >= std::byte{2} &&
         head[1] <= std::byte{5};
}

Result<PickleRow> read_pickle_row(const ArchiveBytes& bytes) {
  PickleRow row;
  const uint64_t most = std::min(bytes.size_bytes, kMaxRowBytes);
  for (uint64_t size = std::min(kFirstReadBytes, most);;
       size = std::min(size * kReadGrowth, most)) {
    row.head.resize(static_cast<size_t>(size));
    SHW_RETURN_IF_ERROR(bytes.read_range(0, row.head, "its pickles"));
    find_pickles(bytes.file, &row);
    if (size == most || row.begins.back() + kNearTheEnd < size) return row;
  }
}

}  // namespace shardwright::format::archive
