// SPDX-License-Identifier: Apache-2.0
//
// Counting sort by file, then by position where a writer did not ascend already: linear for what we
// write.
#include "core/format/native/extent_order_internal.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/native/native_format.h"

namespace shardwright::format::native::internal {
namespace {

bool comes_before(const StoredItem& a, const StoredItem& b) {
  if (a.position != b.position) return a.position < b.position;
  if (a.size_bytes != b.size_bytes) return a.size_bytes < b.size_bytes;
  return a.item < b.item;
}

std::string item_text(const plan::Catalog& catalog, uint32_t item) {
  if (item < catalog.chunks.size()) {
    const uint32_t tensor = catalog.chunks[item].tensor;
    return fmt::format("tensor '{}' {}", escape_text(catalog.tensor_name(tensor), 128),
                       box_text(catalog.chunk_box(item)));
  }
  return fmt::format("object '{}'",
                     escape_text(catalog.object_name(item - catalog.chunks.size()), 128));
}

Status misplaced(const plan::Catalog& catalog, const StoredItem& item, const ManifestFile& file,
                 std::string_view why) {
  return data_loss(fmt::format("{} of {} bytes at offset {} of {} {}",
                               item_text(catalog, item.item), item.size_bytes, item.position,
                               rank_file_name(file.rank), why))
      .with_detail("file", rank_file_name(file.rank))
      .with_detail("offset", fmt::to_string(item.position))
      .with_detail("length", fmt::to_string(item.size_bytes));
}

Status check_file(const ManifestFile& file) {
  uint64_t index_end = 0;
  uint64_t least = 0;
  const bool fits = checked_add(file.index_position, file.index_bytes, &index_end) &&
                    checked_add(index_end, kTrailerBytes, &least) && least <= file.size_bytes &&
                    file.size_bytes <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (fits && file.index_position >= kFileHeaderBytes && file.index_bytes > 0) return {};
  return data_loss(fmt::format(
                       "{} of {} bytes cannot hold an index of {} bytes at offset {} and a trailer",
                       rank_file_name(file.rank), file.size_bytes, file.index_bytes,
                       file.index_position))
      .with_detail("file", rank_file_name(file.rank));
}

Status check_extents(const plan::Catalog& catalog, std::span<const StoredItem> items,
                     const ManifestFile& file) {
  uint64_t end = kFileHeaderBytes;
  for (const StoredItem& item : items) {
    if (item.position < kFileHeaderBytes)
      return misplaced(catalog, item, file, "lies in the file's header");
    if (item.position < end && item.size_bytes != 0)
      return misplaced(catalog, item, file, "overlaps the one before it");
    uint64_t item_end = 0;
    if (!checked_add(item.position, item.size_bytes, &item_end) || item_end > file.index_position) {
      return misplaced(catalog, item, file, "reaches beyond the extents");
    }
    end = std::max(end, item_end);
  }
  return {};
}

}  // namespace

void sort_by_position(std::vector<StoredItem>* items) {
  if (!std::is_sorted(items->begin(), items->end(), comes_before))
    std::sort(items->begin(), items->end(), comes_before);
}

Result<ExtentOrder> ExtentOrder::create(const plan::Catalog& catalog,
                                        std::span<const ManifestFile> files) {
  const size_t chunk_count = catalog.chunks.size();
  const size_t item_count = chunk_count + catalog.objects.size();
  if (item_count > std::numeric_limits<uint32_t>::max())
    return data_loss("more chunks and objects than can be numbered");
  for (const ManifestFile& file : files) SHW_RETURN_IF_ERROR(check_file(file));
  const auto place_of = [&](size_t item) {
    return item < chunk_count ? catalog.chunks[item].place
                              : catalog.objects[item - chunk_count].place;
  };

  ExtentOrder order;
  order.begins_.assign(files.size() + 1, 0);
  for (size_t item = 0; item < item_count; ++item) {
    if (place_of(item) >= files.size()) {
      return data_loss(fmt::format("{} lies in file {} of {}",
                                   item_text(catalog, static_cast<uint32_t>(item)), place_of(item),
                                   files.size()));
    }
    ++order.begins_[place_of(item) + 1];
  }
  for (size_t file = 0; file < files.size(); ++file) order.begins_[file + 1] += order.begins_[file];
  order.items_.resize(item_count);
  std::vector<size_t> next(order.begins_.begin(), order.begins_.end() - 1);
  for (size_t item = 0; item < item_count; ++item) {
    StoredItem& stored = order.items_[next[place_of(item)]++];
    stored.item = static_cast<uint32_t>(item);
    stored.position = item < chunk_count ? catalog.chunks[item].position
                                         : catalog.objects[item - chunk_count].position;
    stored.size_bytes = item < chunk_count ? catalog.chunk_bytes(item)
                                           : catalog.objects[item - chunk_count].size_bytes;
  }
  order.slots_.resize(item_count);
  for (size_t file = 0; file < files.size(); ++file) {
    const auto begin = order.items_.begin() + static_cast<ptrdiff_t>(order.begins_[file]);
    const auto end = order.items_.begin() + static_cast<ptrdiff_t>(order.begins_[file + 1]);
    if (!std::is_sorted(begin, end, comes_before)) std::sort(begin, end, comes_before);
    SHW_RETURN_IF_ERROR(
        check_extents(catalog, order.items(static_cast<uint32_t>(file)), files[file]));
    uint32_t slot = 0;
    for (auto each = begin; each != end; ++each) order.slots_[each->item] = slot++;
  }
  return order;
}

}  // namespace shardwright::format::native::internal
