// SPDX-License-Identifier: Apache-2.0
//
// BlockFiller: puts the bytes of a write task together in memory (header, packed elements of
// tensors, objects, zeros between them) and computes the digest of every block that begins in it
// while the bytes are hot. Tasks may be filled in any order and by several threads at once: digests
// go to places that are fixed beforehand, so the result does not depend on who fills what.
// Thread-compatible; fill is thread-safe for different tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/exec/write_tasks_internal.h"
#include "core/integrity/digest.h"
#include "core/plan/local_plan.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"

namespace shardwright::exec::internal {

// All must outlive the filler. local is the local plan that the list was made from, layout that of
// the list.
struct FillSource {
  const State& state;
  const plan::LocalPlan& local;
  const plan::WriteList& list;
  const format::native::FileLayout& layout;
  bool digests = true;

  // Of an entry: in a description rank 0 stands for each rank in turn.
  int32_t owner(int32_t described) const { return described < 0 ? -1 : list.rank; }
};

class BlockFiller {
 public:
  explicit BlockFiller(const FillSource& source);

  // Fills buffer (task.end - task.begin bytes).
  Status fill(const WriteTask& task, std::span<std::byte> buffer);

  // Digests of the blocks of all items, in the order of the list; complete when all tasks were
  // filled.
  std::span<const integrity::Digest128> digests() const { return digests_; }

 private:
  struct Bytes;  // where the packed bytes of an item come from
  Result<Bytes> bytes_of(const plan::WriteItem& item) const;
  integrity::Digest128 key_of(const plan::WriteItem& item) const;
  Status fill_item(const WriteTask& task, const format::native::PlacedItem& placed,
                   std::span<std::byte> buffer);
  void fill_blocks(size_t item, const Bytes& from, uint64_t begin, std::span<std::byte> target);

  FillSource source_;
  std::vector<std::byte> header_;
  std::vector<uint64_t> digest_begins_;  // per item, and the end
  std::vector<integrity::Digest128> digests_;
};

}  // namespace shardwright::exec::internal
