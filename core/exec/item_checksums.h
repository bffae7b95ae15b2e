// SPDX-License-Identifier: Apache-2.0
//
// ItemChecksums: compares the checksums that formats without digests have of whole chunks and
// objects (OpenedCheckpoint::item_checksum) while these are read, whatever parts they come in and
// whoever reads them. A part is summed when it is handed on, so nothing is read or walked twice.
// What is never read whole is not compared. Thread-safe but for expect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/concurrency/mutex.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::exec {

class ItemChecksums {
 public:
  // The checkpoint outlives it.
  explicit ItemChecksums(const format::OpenedCheckpoint& opened);

  // Whether there is anything to compare.
  static bool are_offered(const format::OpenedCheckpoint& opened) {
    return opened.has_checksums() && opened.digest_block_bytes() == 0;
  }

  // A part of an item: block bytes [begin, begin + bytes).
  struct Part {
    format::StoredItem item;
    uint64_t begin = 0;
    std::span<const std::byte> bytes;
  };
  // Their parts will come, and all of them together be each item: in blocks of so many bytes, the
  // last one aside (others are then not looked at), or with 0 in any parts that do not overlap. A
  // part may come again. Before the first add.
  void expect(std::span<const format::StoredItem> items, uint64_t block_bytes);
  // DATA_LOSS naming tensor or object, file and place when this was the last part of its item and
  // the checksum is another one. Parts of items that are not expected are not looked at.
  Status add(const Part& part);
  // Bytes of the items whose checksums were compared.
  uint64_t compared_bytes() const;

 private:
  struct Summed {
    uint64_t begin = 0;
    uint64_t size_bytes = 0;
    uint32_t crc = 0;
  };
  struct Item {
    format::StoredItem item;
    uint64_t size_bytes = 0;
    uint64_t summed_bytes = 0;
    std::vector<Summed> parts;  // ascending
  };
  Item* find(const format::StoredItem& item);
  uint64_t size_of(const format::StoredItem& item) const;
  bool counts(const Item& item, const Part& part) const;
  bool take(Item* item, const Summed& part);
  Status compare(const format::StoredItem& item, std::span<const Summed> parts);
  Status differs(const format::StoredItem& item, uint32_t expected, uint32_t found) const;

  const format::OpenedCheckpoint& opened_;
  mutable Mutex mutex_;      // held while parts are noted, not while they are summed
  std::vector<Item> items_;  // ascending; which there are changes in expect alone
  uint64_t block_bytes_ = 0;
  uint64_t compared_bytes_ SHW_GUARDED_BY(mutex_) = 0;
};

// The chunks of these tensors.
std::vector<format::StoredItem> chunks_of(const plan::Catalog& catalog,
                                          std::span<const size_t> tensors);

}  // namespace shardwright::exec
