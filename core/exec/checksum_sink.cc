// SPDX-License-Identifier: Apache-2.0
#include "core/exec/checksum_sink_internal.h"

#include <algorithm>
#include <tuple>

namespace shardwright::exec::internal {
namespace {

using format::StoredItem;

StoredItem item_of(const BlockNeed& need) {
  return {need.kind == NeedKind::kObject ? StoredItem::Kind::kObject : StoredItem::Kind::kChunk,
          need.item};
}

uint64_t size_of(const format::OpenedCheckpoint& opened, const StoredItem& item) {
  const plan::Catalog& catalog = opened.catalog();
  return item.kind == StoredItem::Kind::kChunk ? catalog.chunk_bytes(item.number)
                                               : catalog.objects[item.number].size_bytes;
}

// A need that is a whole block of its item.
struct WholeBlock {
  StoredItem item;
  uint64_t block = 0;
  auto order() const { return std::tuple(item.kind, item.number, block); }
};

// The items of which each block is among the needs.
std::vector<StoredItem> whole_items(const format::OpenedCheckpoint& opened,
                                    std::span<const BlockNeed> needs) {
  const uint64_t unit = block_bytes_of(opened);
  std::vector<WholeBlock> blocks;
  blocks.reserve(needs.size());
  for (const BlockNeed& need : needs) {
    if (need.kind == NeedKind::kPadding || need.begin % unit != 0) continue;
    const StoredItem item = item_of(need);
    if (need.length == std::min(unit, size_of(opened, item) - need.begin))
      blocks.push_back({item, need.begin / unit});
  }
  const auto order = [](const WholeBlock& block) { return block.order(); };
  if (!std::ranges::is_sorted(blocks, {}, order)) std::ranges::sort(blocks, {}, order);
  const auto twice = std::ranges::unique(blocks, {}, order);
  blocks.erase(twice.begin(), twice.end());
  std::vector<StoredItem> items;
  for (size_t begin = 0; begin < blocks.size();) {
    const StoredItem& item = blocks[begin].item;
    size_t end = begin;
    while (end < blocks.size() && blocks[end].item.kind == item.kind &&
           blocks[end].item.number == item.number)
      ++end;
    if (end - begin == (size_of(opened, item) + unit - 1) / unit) items.push_back(item);
    begin = end;
  }
  return items;
}

}  // namespace

bool checks_blocks(const format::OpenedCheckpoint& opened, const ReadRules& rules) {
  return rules.verify == VerifyRule::kOnRead && opened.digest_block_bytes() > 0;
}

ItemChecksums* expect_whole_items(const format::OpenedCheckpoint& opened, const ReadRules& rules,
                                  std::span<const BlockNeed> needs,
                                  std::optional<ItemChecksums>* checksums) {
  if (rules.verify != VerifyRule::kOnRead || !ItemChecksums::are_offered(opened)) return nullptr;
  checksums->emplace(opened);
  (*checksums)->expect(whole_items(opened, needs), block_bytes_of(opened));
  return &**checksums;
}

Status ChecksumSink::consume(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                             bool landed) {
  const BlockNeed& need = needs.front();
  if (need.kind != NeedKind::kPadding) {
    Status status = checksums_.add({item_of(need), need.begin, bytes});
    if (!status.ok()) return sink_.failed(need, std::move(status));
  }
  return sink_.consume(needs, bytes, landed);
}

}  // namespace shardwright::exec::internal
