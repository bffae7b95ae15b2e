// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint: an opened checkpoint that can be read. Reads are widened to digest blocks, sorted,
// coalesced, checked after the last copy and scattered; several threads may read at the same time.
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/exec/options.h"
#include "core/exec/report.h"
#include "core/exec/runtime.h"
#include "core/exec/save.h"
#include "core/format/format.h"
#include "core/integrity/digest.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load_plan.h"

namespace shardwright::exec {

// One box of a stored tensor into memory shaped like the box.
struct BoxRead {
  size_t tensor = 0;
  Box box;
  TensorView target;  // dtype equals the stored one, shape equals box.sizes
};

struct ReadOutcome {
  uint64_t bytes_read = 0;
  uint64_t bytes_over_read = 0;
  uint64_t bytes_cached = 0;      // of bytes_read, from the page cache
  uint64_t bytes_unverified = 0;  // wanted, and compared with nothing
  std::string io_engine;          // of batched reads; empty when there were none
};

class Checkpoint {
 public:
  // as: see FormatTable::open.
  static Result<std::shared_ptr<const Checkpoint>> open(Runtime& runtime,
                                                        const format::Location& location,
                                                        std::string_view as = "");
  // For who only saves it again in another format: see FormatTable::open_to_convert.
  static Result<std::shared_ptr<const Checkpoint>> open_to_convert(
      Runtime& runtime, const format::Location& location);
  // By one rank for all: metadata receives what the others open_shared with.
  static Result<std::shared_ptr<const Checkpoint>> open_to_share(Runtime& runtime,
                                                                 const format::Location& location,
                                                                 format::StoredMetadata* metadata);
  static Result<std::shared_ptr<const Checkpoint>> open_shared(
      Runtime& runtime, const format::Location& location, const format::StoredMetadata& metadata);
  virtual ~Checkpoint() = default;

  virtual const format::OpenedCheckpoint& opened() const = 0;
  virtual const plan::CatalogIndex& index() const = 0;
  virtual const format::Location& location() const = 0;
  const plan::Catalog& catalog() const { return opened().catalog(); }

  // NOT_FOUND with the nearest names. rank chooses among rank_local entries (-1: the shared one,
  // else the lowest rank).
  virtual Result<size_t> find_tensor(std::string_view name, int32_t rank) const = 0;
  virtual Result<size_t> find_object(std::string_view name, int32_t rank) const = 0;
  // All boxes or a failure; targets may be partly filled then. OUT_OF_RANGE for a box outside its
  // tensor.
  virtual Result<ReadOutcome> read_boxes(std::span<const BoxRead> reads, ReadRules rules,
                                         const CallContext& call) const = 0;
  virtual Result<std::vector<std::byte>> read_object(size_t object, ReadRules rules) const = 0;
  // The bytes from begin on, as many as target takes: objects may be larger than memory.
  // OUT_OF_RANGE for bytes behind the object's end.
  virtual Status read_object_part(size_t object, uint64_t begin, std::span<std::byte> target,
                                  ReadRules rules, const CallContext& call) const = 0;
  // Reads the structure again: manifest, sizes, headers, trailers, indexes; deep: every byte,
  // padding included. Damage is listed in the report, a failure means that looking for it failed.
  virtual Result<Report> find_damage(bool deep, const CallContext& call) const = 0;
  // The same for who wants a whole checkpoint: damage is DATA_LOSS with the place of the first.
  Result<Report> verify(bool deep, const CallContext& call) const;
  // Digest of the whole tensor's row-major bytes, in bounded memory.
  virtual Result<std::vector<std::byte>> tensor_digest(size_t tensor,
                                                       integrity::TensorDigestAlgorithm algorithm,
                                                       const CallContext& call) const = 0;
  // {"schema":1, format, generation, world_size, created, metadata, counts, bytes, files:[...],
  // tensors:[...], objects:[...]}; with_entries false leaves the two lists out.
  virtual std::string info_json(bool with_entries) const = 0;
};

// Name that listings show: the entry's name, with "@rank-N" appended for rank_local entries.
std::string listed_tensor_name(const plan::Catalog& catalog, size_t tensor);
std::string listed_object_name(const plan::Catalog& catalog, size_t object);

}  // namespace shardwright::exec
