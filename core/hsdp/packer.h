// SPDX-License-Identifier: Apache-2.0
//
// Packer: moves parameters and gradients between full tensors and the memory of a unit, as its
// layout places them: the shard of one rank, or the shards of all ranks back to back (what is
// gathered, what is reduced). In place of either, functions take the memory of replicated
// parameters for a parameter that is replicated; it is the same on all ranks. Tensors are dense and
// row-major, in the memory of the work, which on a device goes on after a call; nothing overlaps.
// INVALID_ARGUMENT naming the parameter where a size does not fit. Immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/device/memory_work.h"
#include "core/hsdp/unit_layout.h"
#include "core/tensor/dtype.h"
#include "core/tensor/strided_window.h"

namespace shardwright::hsdp {

// A full gradient of a parameter.
struct FullGradient {
  DType dtype = DType::kInvalid;
  std::span<const std::byte> bytes;
};

class Packer {
 public:
  // dtype: of the elements in the unit's memory. work: null for memory of the host. Both outlive
  // this.
  Packer(const UnitLayout& layout, DType dtype, device::MemoryWork* work = nullptr);

  uint64_t shard_bytes() const;
  uint64_t gathered_bytes() const;
  uint64_t replicated_bytes() const;
  uint64_t full_bytes(size_t parameter) const;

  // What a rank holds of a parameter, inside its shard: row-major elements of local_shape().
  std::span<std::byte> local(size_t parameter, int32_t rank, std::span<std::byte> shard) const;
  std::span<const std::byte> local(size_t parameter, int32_t rank,
                                   std::span<const std::byte> shard) const;
  // The full tensor, inside the shards of all ranks: kRagged and replicated parameters. Empty for
  // kRow, where it takes unpack().
  std::span<std::byte> full(size_t parameter, std::span<std::byte> gathered) const;

  // A rank's part of a full tensor, and zero in the parameter's own padding (kRow).
  Status cut(size_t parameter, int32_t rank, std::span<const std::byte> full,
             std::span<std::byte> shard) const;
  // The full tensor from the shards of all ranks.
  Status unpack(size_t parameter, std::span<const std::byte> gathered,
                std::span<std::byte> full) const;
  // A full gradient to the shards of all ranks, cast to the packer's dtype, and zero in the
  // parameter's own padding (kRow). UNIMPLEMENTED for dtypes that are not cast.
  Status pack(size_t parameter, const FullGradient& gradient, std::span<std::byte> gathered) const;
  // Zero as the gradient.
  Status pack_nothing(size_t parameter, std::span<std::byte> gathered) const;
  // Zero in all that is no parameter's: padding of every kind, and what is left out. Of one shard,
  // or of the shards of all ranks.
  Status zero_padding(int32_t rank, std::span<std::byte> shard) const;
  Status zero_padding(std::span<std::byte> gathered) const;

 private:
  size_t bytes_of(int64_t elements) const { return static_cast<size_t>(elements) * element_bytes_; }
  // Where unit memory holds the tensor in one run.
  bool is_one_run(size_t parameter) const;
  std::span<std::byte> shard_of(int32_t rank, std::span<std::byte> gathered) const;
  // memory_bytes: of the shards of so many ranks, or of the replicated parameters.
  Status check(size_t parameter, int32_t ranks, size_t memory_bytes) const;
  Status check_full(size_t parameter, size_t full_bytes, uint64_t element_bytes) const;
  Status zero_own_padding(size_t parameter, int32_t rank, std::span<std::byte> shard) const;
  bool is_on_host() const { return work_ == nullptr || work_->is_host(); }
  Status zero(std::span<std::byte> memory) const;
  Status copy(std::span<const std::byte> from, std::span<std::byte> to) const;
  Status cast(DType from, std::span<const std::byte> source, std::span<std::byte> target) const;
  // Runs of elements of `from_dtype`; only on the host are they of this packer's dtype always.
  Status copy_runs(const StridedWindow& from, DType from_dtype, const StridedWindow& to,
                   DType to_dtype) const;
  Status pack_runs(size_t parameter, const FullGradient& gradient,
                   std::span<std::byte> gathered) const;

  const UnitLayout& layout_;
  DType dtype_;
  uint64_t element_bytes_;
  device::MemoryWork* work_;
};

}  // namespace shardwright::hsdp
