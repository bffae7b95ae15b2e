// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's half of a save into a directory of torch.distributed.checkpoint: one file per
// rank, digests beside them, and the index of all items, whose replacement is the commit. A format
// that keeps its data this way and commits another way takes the index and the digests in hand
// itself. Thread rule of GenerationWriter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/saving.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/digest_sidecar.h"
#include "core/format/torch_dcp/index_writer.h"

namespace shardwright::format::torch_dcp {

// What goes into the index: items by chunk and object of the catalog.
struct IndexParts {
  const plan::Catalog* catalog = nullptr;  // of the plan, or the own one
  plan::Catalog own;
  std::vector<std::string> files;
  std::vector<ItemPlace> chunks;
  std::vector<ItemPlace> objects;
  DigestSidecar sidecar;  // chunks without elements have no item there
};

class DcpGeneration final : public GenerationWriter {
 public:
  // Changes what ranks wrote into what the index names.
  using Edit = std::function<Status(IndexParts*)>;

  // Plan outlives it; edit may be empty.
  DcpGeneration(const Location& location, const plan::GlobalSavePlan& plan, SaveSettings settings,
                std::vector<StoredParts> replaced, Edit edit = {})
      : location_(location),
        plan_(plan),
        settings_(std::move(settings)),
        replaced_(std::move(replaced)),
        edit_(std::move(edit)) {}

  Result<uint64_t> planned_bytes() const override;
  Status make(std::string_view generation, Existing existing) override;
  const StoredParts& parts() const override { return parts_; }
  Status check_written(const plan::WriteResult& result) const override;
  Status encode(std::span<const plan::WriteResult> results, int64_t created_unix_ns) override;
  Result<std::unique_ptr<storage::StorageObject>> open_commit() override;
  uint64_t file_count() const override { return file_count_; }
  uint64_t file_bytes() const override { return file_bytes_; }
  std::vector<StoredParts> replaced_parts() const override { return replaced_; }
  std::vector<std::string> notes() const override { return index_.notes; }

  // After encode: the bytes of .metadata.
  std::span<const std::byte> index_bytes() const { return std::as_bytes(std::span(index_.bytes)); }
  // Of an object beside those of the ranks, which the generation takes with it when it goes.
  void add_part(std::string key) { parts_.keys.push_back(std::move(key)); }
  // After encode: what write_sidecar writes, beside the index.
  std::span<const std::byte> sidecar_bytes() const { return sidecar_; }
  Status write_sidecar() const;

 private:
  const Location location_;
  const plan::GlobalSavePlan& plan_;
  const SaveSettings settings_;
  const std::vector<StoredParts> replaced_;
  const Edit edit_;
  StoredParts parts_;
  EncodedIndex index_;
  std::vector<std::byte> sidecar_;
  uint64_t file_count_ = 0;
  uint64_t file_bytes_ = 0;
};

// What an object of a save is written with, and under which name while it is in flight.
struct ObjectToWrite {
  std::string key;
  std::span<const std::byte> bytes;
  std::string_view suffix;
};
// Invisible, all bytes written and, where that is wanted, synced.
Result<std::unique_ptr<storage::StorageObject>> write_invisible(storage::Storage& storage,
                                                                const ObjectToWrite& object,
                                                                const SaveSettings& settings);
// Visible and durable with its name; ALREADY_EXISTS where it is there.
Status write_beside(const Location& location, const ObjectToWrite& object,
                    const SaveSettings& settings);

// The generation of an index of ours: by the names of its files; those of more than one are kept
// generations. The keys of its files of data come with it.
void take_index(const Location& location, const DcpIndex& index, CurrentCheckpoint* current);
// What goes with a checkpoint that is replaced: its files of data and its digests. index_key: of
// its index.
Result<std::vector<StoredParts>> parts_of_replaced(const Location& location,
                                                   std::string_view index_key,
                                                   const CurrentCheckpoint& replaced);

}  // namespace shardwright::format::torch_dcp
