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
#include <unordered_map>
#include <vector>

#include "core/concurrency/mutex.h"
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

  // Before the first fill, where items are wrapped: keeps checksums of their bytes.
  void keep_checksums() { checksums_.resize(static_cast<size_t>(digest_begins_.back())); }

  // Fills buffer (task.end - task.begin bytes). layout: the one that the task was cut from. What
  // wraps a large item is filled when the item has been.
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

  // A run of a task whose items are wrapped.
  struct WrappedRun {
    WantedRun run;
    bool is_digested = false;  // whole digest blocks, which belong to this task
  };
  class WrappedTask;
  Status fill_wrapped(const format::FileLayout& layout, const WriteTask& task,
                      std::span<std::byte> buffer);
  Status read_runs(std::span<const WrappedRun> runs);
  Status read_run(const WrappedRun& wanted);
  void sum_blocks(const WantedRun& run);
  uint32_t checksum_of(const format::PlacedItem& placed) const;
  void keep_end(const WantedRun& run, uint64_t item_bytes);

  const device::Devices& devices_;
  const format::RankContents& source_;
  ContentSource* bytes_;
  std::vector<uint64_t> digest_begins_;  // of the blocks of each item, and the end
  std::vector<integrity::Digest128> digests_;
  std::vector<uint32_t> checksums_;  // of the blocks of large items
  // How large items end, less than 4 KiB each, where reading them twice costs a block.
  Mutex ends_mutex_;
  std::unordered_map<uint32_t, std::vector<std::byte>> ends_ SHW_GUARDED_BY(ends_mutex_);
};

}  // namespace shardwright::exec::internal
