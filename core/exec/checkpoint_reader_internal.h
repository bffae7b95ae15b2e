// SPDX-License-Identifier: Apache-2.0
//
// CheckpointReader: the one implementation of Checkpoint, and the parts of it that live in files of
// their own. Immutable, thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/exec/block_reader_internal.h"
#include "core/exec/checkpoint.h"
#include "core/exec/fragment_reader_internal.h"
#include "core/plan/load/catalog_index.h"

namespace shardwright::exec::internal {

class CheckpointReader final : public Checkpoint {
 public:
  CheckpointReader(Runtime& runtime, format::Location location,
                   std::shared_ptr<const format::OpenedCheckpoint> opened);

  const format::OpenedCheckpoint& opened() const override { return *opened_; }
  const plan::CatalogIndex& index() const override { return index_; }
  const format::Location& location() const override { return location_; }
  Result<size_t> find_tensor(std::string_view name, int32_t rank) const override;
  Result<size_t> find_object(std::string_view name, int32_t rank) const override;
  Result<ReadOutcome> read_boxes(std::span<const BoxRead> reads, ReadRules rules,
                                 const CallContext& call) const override;
  Result<std::vector<std::byte>> read_object(size_t object, ReadRules rules) const override;
  Status read_object_part(size_t object, uint64_t begin, std::span<std::byte> target,
                          ReadRules rules, const CallContext& call) const override;
  Result<Report> find_damage(bool deep, const CallContext& call) const override;
  Result<std::vector<std::byte>> tensor_digest(size_t tensor,
                                               integrity::TensorDigestAlgorithm algorithm,
                                               const CallContext& call) const override;
  std::string info_json(bool with_entries) const override;

 private:
  Runtime& runtime_;
  const format::Location location_;
  const std::shared_ptr<const format::OpenedCheckpoint>
      opened_;  // co-owned by readers of this checkpoint
  const plan::CatalogIndex index_;
  const BlockReader reader_;
};

// "generation 0123...", or "a checkpoint of format safetensors" where there are none; for logs.
std::string opened_text(const format::OpenedCheckpoint& opened);

// Damage as the report lists it: what the details of a failure say.
DamageReport damage_of(const Status& status);

// verify.cc
Result<Report> find_all_damage(const BlockReader& reader, const format::OpenedCheckpoint& opened,
                               bool deep, const CallContext& call);
// tensor_digest.cc; what Checkpoint::tensor_digest says, by reads of boxes.
Result<std::vector<std::byte>> digest_of_tensor(Runtime& runtime, const Checkpoint& checkpoint,
                                                size_t tensor,
                                                integrity::TensorDigestAlgorithm algorithm,
                                                const CallContext& call);
// checkpoint_info.cc
std::string checkpoint_info_json(const format::OpenedCheckpoint& opened, bool with_entries);

}  // namespace shardwright::exec::internal
