// SPDX-License-Identifier: Apache-2.0
//
// CheckpointSource: the entries of an open checkpoint as what one rank writes. Reads and verifies
// just the blocks that a run needs, so memory does not grow with the tensors. Thread-safe.
#pragma once

#include <memory>
#include <vector>

#include "core/exec/checkpoint.h"
#include "core/exec/content_source_internal.h"
#include "core/exec/item_checksums.h"
#include "core/plan/save_plan.h"
#include "core/state/state.h"

namespace shardwright::exec::internal {

// Numbers in the checkpoint of the entries of a state, in their order.
struct SourceEntries {
  std::vector<size_t> tensors;  // of which the state has one or more boxes
  std::vector<size_t> objects;
};

class TakenParts;

class CheckpointSource final : public ContentSource {
 public:
  // All outlive the source, and what control points to. taken: is told what was read; may be null.
  CheckpointSource(const Checkpoint& checkpoint, const State& state, const SourceEntries& entries,
                   const plan::WriteList& list, const CallControl& control,
                   TakenParts* taken = nullptr)
      : checkpoint_(checkpoint),
        state_(state),
        entries_(entries),
        list_(list),
        call_{control, nullptr, {}},
        taken_(taken),
        checksums_(checkpoint.opened()) {
    if (!ItemChecksums::are_offered(checkpoint.opened())) return;
    checksums_.expect(chunks_of(checkpoint.catalog(), entries.tensors), 0);
    rules_.checksums = &checksums_;
  }

  Status read(std::span<const WantedRun> runs) override;
  bool comes_in_blocks() const override { return checkpoint_.opened().digest_block_bytes() > 0; }

 private:
  struct Pending;
  Status add_tensor_run(const WantedRun& run, Pending* pending) const;

  const Checkpoint& checkpoint_;
  const State& state_;
  const SourceEntries& entries_;
  const plan::WriteList& list_;
  const CallContext call_;
  TakenParts* const taken_;
  ItemChecksums checksums_;  // of chunks, which come in runs
  ReadRules rules_;
};

}  // namespace shardwright::exec::internal
