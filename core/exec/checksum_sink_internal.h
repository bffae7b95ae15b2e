// SPDX-License-Identifier: Apache-2.0
//
// ChecksumSink: hands blocks on to another sink and sums them on the way. A chunk or object whose
// checksum is wrong fails with its last block. Thread-safe as the other sink.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "core/exec/block_reader_internal.h"
#include "core/exec/item_checksums.h"

namespace shardwright::exec::internal {

// Whether each block has a digest that is looked at.
bool checks_blocks(const format::OpenedCheckpoint& opened, const ReadRules& rules);

// Makes *checksums for what is wanted whole, and gives it; null where there is nothing to compare.
ItemChecksums* expect_whole_items(const format::OpenedCheckpoint& opened, const ReadRules& rules,
                                  std::span<const BlockNeed> needs,
                                  std::optional<ItemChecksums>* checksums);

class ChecksumSink final : public BlockSink {
 public:
  // Both outlive the sink.
  ChecksumSink(ItemChecksums& checksums, BlockSink& sink) : checksums_(checksums), sink_(sink) {}

  std::span<std::byte> destination(std::span<const BlockNeed> needs) override {
    return sink_.destination(needs);
  }
  Status consume(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                 bool landed) override;
  Status failed(const BlockNeed& need, Status status) override {
    return sink_.failed(need, std::move(status));
  }
  bool survives_failures() const override { return sink_.survives_failures(); }

 private:
  ItemChecksums& checksums_;
  BlockSink& sink_;
};

}  // namespace shardwright::exec::internal
