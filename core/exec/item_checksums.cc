// SPDX-License-Identifier: Apache-2.0
#include "core/exec/item_checksums.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/integrity/crc32.h"
#include "core/layout/box.h"

namespace shardwright::exec {
namespace {

using format::StoredItem;
using Kind = format::StoredItem::Kind;

auto order_of(const StoredItem& item) {
  return std::tuple(item.kind, item.number);
}

}  // namespace

ItemChecksums::ItemChecksums(const format::OpenedCheckpoint& opened) : opened_(opened) {}

uint64_t ItemChecksums::size_of(const StoredItem& item) const {
  const plan::Catalog& catalog = opened_.catalog();
  return item.kind == Kind::kChunk ? catalog.chunk_bytes(item.number)
                                   : catalog.objects[item.number].size_bytes;
}

void ItemChecksums::expect(std::span<const StoredItem> items, uint64_t block_bytes) {
  const MutexLock lock(mutex_);
  block_bytes_ = block_bytes;
  items_.reserve(items_.size() + items.size());
  for (const StoredItem& item : items) items_.push_back({item, size_of(item), 0, {}});
  const auto order = [](const Item& each) { return order_of(each.item); };
  if (!std::ranges::is_sorted(items_, {}, order)) std::ranges::sort(items_, {}, order);
  const auto twice = std::ranges::unique(items_, {}, order);
  items_.erase(twice.begin(), twice.end());
}

ItemChecksums::Item* ItemChecksums::find(const StoredItem& item) {
  const auto found = std::ranges::lower_bound(items_, order_of(item), {},
                                              [](const Item& each) { return order_of(each.item); });
  if (found == items_.end() || order_of(found->item) != order_of(item)) return nullptr;
  return &*found;
}

bool ItemChecksums::counts(const Item& item, const Part& part) const {
  return block_bytes_ == 0 ||
         (part.begin % block_bytes_ == 0 &&
          part.bytes.size() == std::min(block_bytes_, item.size_bytes - part.begin));
}

Status ItemChecksums::add(const Part& part) {
  Item* const item = find(part.item);
  if (item == nullptr || !counts(*item, part)) return {};
  const Summed summed{part.begin, part.bytes.size(), integrity::crc32(0, part.bytes)};
  if (summed.size_bytes == item->size_bytes) return compare(part.item, {&summed, 1});
  std::vector<Summed> whole;
  {
    const MutexLock lock(mutex_);
    if (!take(item, summed)) return {};
    whole = std::move(item->parts);
    item->parts.clear();
  }
  return compare(part.item, whole);
}

// Whether it was the last one. A part that comes again takes the place of its first coming.
bool ItemChecksums::take(Item* item, const Summed& part) {
  const auto at = std::ranges::lower_bound(item->parts, part.begin, {}, &Summed::begin);
  if (at != item->parts.end() && at->begin == part.begin) {
    if (at->size_bytes == part.size_bytes) *at = part;
    return false;
  }
  item->parts.insert(at, part);
  item->summed_bytes += part.size_bytes;
  return item->summed_bytes == item->size_bytes;
}

Status ItemChecksums::compare(const StoredItem& item, std::span<const Summed> parts) {
  uint64_t bytes = 0;
  uint32_t found = 0;
  for (const Summed& part : parts) {
    if (part.begin != bytes) return {};  // parts that overlap are not the whole
    found = integrity::crc32_of_both(found, part.crc, part.size_bytes);
    bytes += part.size_bytes;
  }
  SHW_ASSIGN_OR_RETURN(const std::optional<uint32_t> expected, opened_.item_checksum(item));
  if (!expected.has_value()) return {};
  {
    const MutexLock lock(mutex_);
    compared_bytes_ += bytes;
  }
  return *expected == found ? Status() : differs(item, *expected, found);
}

Status ItemChecksums::differs(const StoredItem& item, uint32_t expected, uint32_t found) const {
  const plan::Catalog& catalog = opened_.catalog();
  const bool is_chunk = item.kind == Kind::kChunk;
  const std::string_view name = is_chunk ? catalog.tensor_name(catalog.tensor_of(item.number))
                                         : catalog.object_name(item.number);
  SHW_ASSIGN_OR_RETURN(const format::Extent extent, is_chunk ? opened_.chunk_extent(item.number)
                                                             : opened_.object_extent(item.number));
  const std::string& file = opened_.files()[extent.file].key;
  Status status =
      data_loss(fmt::format("file '{}': CRC-32 of the {} bytes of '{}' at {} is {:08x}, expected "
                            "{:08x}",
                            escape_text(file), extent.size_bytes, escape_text(name), extent.offset,
                            found, expected))
          .with_detail(is_chunk ? "tensor" : "object", name)
          .with_detail("file", file)
          .with_detail("offset", fmt::to_string(extent.offset))
          .with_detail("length", fmt::to_string(extent.size_bytes))
          .with_detail("expected", fmt::format("{:08x}", expected))
          .with_detail("found", fmt::format("{:08x}", found));
  if (!is_chunk) return status;
  return std::move(status).with_detail("box", box_text(catalog.chunk_box(item.number)));
}

std::vector<StoredItem> chunks_of(const plan::Catalog& catalog, std::span<const size_t> tensors) {
  std::vector<StoredItem> chunks;
  for (const size_t tensor : tensors) {
    const plan::TensorRecord& record = catalog.tensors[tensor];
    for (uint64_t i = 0; i < record.chunk_count; ++i)
      chunks.push_back({Kind::kChunk, record.chunk_begin + i});
  }
  return chunks;
}

uint64_t ItemChecksums::compared_bytes() const {
  const MutexLock lock(mutex_);
  return compared_bytes_;
}

}  // namespace shardwright::exec
