// SPDX-License-Identifier: Apache-2.0
//
// BlockFiller: puts the bytes of a write task together in memory (head of the file, packed elements
// of tensors, objects, zeros between them) and computes the digest of every block that begins in it
// while the bytes are hot. Tasks may be filled in any order and by several threads at once: digests
// go to places that are fixed beforehand, so the result does not depend on who fills what.
// Thread-compatible; fill is thread-safe for different tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/devices.h"
#include "core/exec/content_source_internal.h"
#include "core/exec/write_tasks_internal.h"
#include "core/integrity/digest.h"
#include "core/plan/local_plan.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"

namespace shardwright::exec::internal {

class BlockFiller {
 public:
  // All must outlive the filler. bytes: where the items' bytes come from, null = the memory of the
  // state, on these devices.
  BlockFiller(const device::Devices& devices, const format::RankContents& contents,
              ContentSource* bytes = nullptr);

  // Fills buffer (task.end - task.begin bytes). layout: the one that the task was cut from.
  Status fill(const format::FileLayout& layout, const WriteTask& task, std::span<std::byte> buffer);

  // Digests of the blocks of all items, in the order of the list; complete when all tasks were
  // filled.
  std::span<const integrity::Digest128> digests() const { return digests_; }

 private:
  struct Bytes;  // where the packed bytes of an item come from
  Result<Bytes> bytes_of(const plan::WriteItem& item) const;
  integrity::Digest128 key_of(const plan::WriteItem& item) const;
  Status fill_item(const WriteTask& task, const format::PlacedItem& placed,
                   std::span<std::byte> buffer);
  Status fill_blocks(size_t item, const Bytes& from, uint64_t begin, std::span<std::byte> target);
  Status fill_part(const WriteTask& task, const format::PlacedItem& placed,
                   std::span<std::byte> buffer);
  Status fill_from_source(const format::FileLayout& layout, const WriteTask& task,
                          std::span<std::byte> buffer);
  void digest_run(const WantedRun& run);

  const device::Devices& devices_;
  const format::RankContents& source_;
  ContentSource* bytes_;
  std::vector<uint64_t> digest_begins_;  // per item, and the end
  std::vector<integrity::Digest128> digests_;
};

}  // namespace shardwright::exec::internal
