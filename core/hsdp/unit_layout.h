// SPDX-License-Identifier: Apache-2.0
//
// UnitLayout: where the parameters of a unit lie in the memory that ranks gather and reduce. A pure
// function of what is declared, equal on all ranks, so its digest shows ranks that differ. The
// shard of each rank has the same number of elements. Parameters that are not sharded have memory
// of their own, one behind the other (replicated_elements). Immutable.
//
// kRow, the geometry of FSDP2 in torch 2.15: a shard holds its part of each parameter back to back,
// each padded to the same size. The first dimension is cut as torch.chunk cuts, so that the last
// ranks may hold fewer rows or none; any other must divide.
// kRagged: the shards of all ranks, one behind the other, are one range of elements in which each
// parameter is contiguous; every border between two ranks lies between two rows. What is gathered
// needs no copy. Padding stands between parameters, and behind the last.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/layout/box.h"
#include "core/layout/index_range.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright::hsdp {

// Numbers are those of the C surface.
enum class LayoutMode : int32_t { kRow = 0, kRagged = 1 };

// What a host says of a parameter.
struct ParameterSpec {
  std::string fqn;
  DType dtype = DType::kFloat32;  // original
  Dims shape;             // global; of the tensor-parallel rank, where there is such a thing
  int32_t shard_dim = 0;  // negative counts from the end
  bool frozen = false;
  bool replicate = false;
  std::vector<std::string> aliases;  // other names of it
};

// A parameter in the memory of its unit. Elements.
struct ParameterSlot {
  int32_t dim = 0;              // that is sharded
  int64_t rows = 0;             // extent of that dimension
  int64_t row_elements = 0;     // elements per index of it
  int64_t shard_rows = 0;       // kRow: of every rank, padding included
  int64_t offset_in_shard = 0;  // kRow: equal on all ranks; replicated: in the memory of those
  int64_t offset_in_unit = 0;   // kRagged: of its first element in the shards of all ranks
  bool is_replicated = false;
  bool is_left_out = false;  // by keeping()
  int64_t elements() const { return rows * row_elements; }
};

class UnitLayout {
 public:
  // INVALID_ARGUMENT naming FQN, dimension, size and world where a dimension other than the first
  // does not divide; also a tensor without dimensions (unless replicated), a dtype of less than a
  // byte, dtypes that differ, a name that comes twice, kRagged of a dimension other than the first,
  // a world below 1, sizes beyond 63 bits of elements.
  static Result<UnitLayout> create(std::vector<ParameterSpec> specs, int32_t world,
                                   LayoutMode mode);
  // The same split of some of the parameters, such as those that have gradients. Parameters keep
  // their numbers; no rank holds anything of those left out. kRow: their room is gone from the
  // shard. kRagged: it is padding. One flag per parameter.
  UnitLayout keeping(const std::vector<bool>& kept) const;

  std::span<const ParameterSpec> specs() const { return specs_; }
  const ParameterSlot& slot(size_t parameter) const { return slots_[parameter]; }
  size_t size() const { return slots_.size(); }
  DType dtype() const { return dtype_; }  // of all; kInvalid where there is no parameter
  int32_t world() const { return world_; }
  LayoutMode mode() const { return mode_; }
  // Elements of one rank's shard, padding included; of what is gathered: times world.
  int64_t shard_elements() const { return shard_elements_; }
  int64_t gathered_elements() const { return shard_elements_ * world_; }
  int64_t padding_elements() const { return padding_elements_; }  // of all ranks
  int64_t replicated_elements() const { return replicated_elements_; }

  // Rows that a rank holds; none of a parameter that is left out, all of a replicated one.
  IndexRange rows(size_t parameter, int32_t rank) const;
  // What a rank holds of a parameter, in its global index space, padding excluded; empty boxes
  // begin at the end of the dimension.
  Box box(size_t parameter, int32_t rank) const;
  Dims local_shape(size_t parameter, int32_t rank) const;
  // First element of what the rank holds of it, from the beginning of its shard (replicated: of
  // that memory). Between 0 and shard_elements() for empty boxes, too.
  int64_t local_offset(size_t parameter, int32_t rank) const;
  // XXH3-128 of all that must be equal on ranks: specs, world, mode, what is left out.
  const Digest128& digest() const { return digest_; }

 private:
  UnitLayout() = default;
  Status place_rows();
  Status place_ragged();
  Status place_replicated();
  Status count_padding();
  void make_digest();

  std::vector<ParameterSpec> specs_;
  std::vector<ParameterSlot> slots_;
  DType dtype_ = DType::kInvalid;
  int32_t world_ = 1;
  LayoutMode mode_ = LayoutMode::kRow;
  int64_t shard_elements_ = 0;
  int64_t padding_elements_ = 0;
  int64_t replicated_elements_ = 0;
  Digest128 digest_{};
};

}  // namespace shardwright::hsdp
