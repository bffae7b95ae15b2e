// SPDX-License-Identifier: Apache-2.0
//
// UnitGroup: the parameters of a unit that travel together, since they are stored in one dtype and
// all sharded or all replicated; their memory from shard to whole tensors and back. What is whole
// on every rank already (replicated, or a shard axis of one rank) is not gathered: it is cast, or
// given out where it lies. Used by its unit, under the lock of that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/hsdp/dtype_policy.h"
#include "core/hsdp/gather_internal.h"
#include "core/hsdp/home_internal.h"
#include "core/hsdp/packer.h"
#include "core/hsdp/parameter_allocator.h"
#include "core/hsdp/unit_layout.h"
#include "core/hsdp/unit_memory.h"

namespace shardwright::hsdp::internal {

class UnitGroup {
 public:
  // The unit to which it belongs; outlives it.
  struct Owner {
    Runtime* runtime = nullptr;
    UnitId unit = 0;
    const std::string* unit_name = nullptr;
    ParameterAllocator* allocator = nullptr;  // null: memory of our own
    bool offloads = false;                    // shards stay with the host, which is not the device
  };

  // numbers: of its parameters in the unit, in the order of the specs.
  static Result<std::unique_ptr<UnitGroup>> create(const Owner& owner, const DTypePolicy& dtypes,
                                                   LayoutMode mode,
                                                   std::vector<ParameterSpec> specs,
                                                   std::vector<size_t> numbers);
  ~UnitGroup();

  const Owner& owner() const { return owner_; }
  // Of the shard and its gradient.
  const Home& home() const { return home_; }
  const UnitLayout& layout() const { return layout_; }
  const DTypePolicy& dtypes() const { return dtypes_; }
  bool is_replicated() const { return replicated_; }
  // Nothing travels to make its parameters whole.
  bool is_whole() const { return whole_; }
  size_t size() const { return numbers_.size(); }
  size_t number_in_unit(size_t parameter) const { return numbers_[parameter]; }
  int32_t shard_rank() const { return shard_rank_; }
  // Of one rank, in elements.
  int64_t shard_elements() const;
  uint64_t gathered_bytes() const;

  // The shard, zero, padding included.
  Status allocate_shard();
  // This rank's part of a whole parameter, in the dtype in which it is stored. on_device: the
  // parameter lies there already.
  Status fill(size_t parameter, std::span<const std::byte> whole, bool on_device);
  std::span<std::byte> local(size_t parameter) const;
  std::span<std::byte> shard() const { return shard_->bytes(); }
  // Only while unsharded; of the whole parameter, in the compute dtype.
  std::span<std::byte> full(size_t parameter) const { return full_[parameter]; }

  // Issues the gather from the shards, or from the secondary shards of the ranks of channel.
  Status start_gather(Channel* channel);
  // True when finish_gather will not wait; false after timeout_ns (negative = no limit).
  Result<bool> wait_gather(int64_t timeout_ns);
  // After wait_gather: the whole parameters are there. secondary_size > 0: this rank also keeps 1/n
  // of what was gathered.
  Status finish_gather(int32_t secondary_size);
  // What was gathered is of no use; after wait_gather or a failure of it.
  void discard_gather() { gather_.reset(); }
  // keep_memory: for the next gather.
  void release_full(bool keep_memory);
  bool has_secondary() const { return secondary_ != nullptr; }
  void release_secondary() { secondary_.reset(); }

 private:
  UnitGroup(const Owner& owner, UnitLayout layout, const DTypePolicy& dtypes);
  uint64_t stored_bytes(int64_t elements) const;
  uint64_t compute_bytes(int64_t elements) const;
  // Where the parameter begins in memory that holds all of them whole.
  uint64_t full_offset(size_t parameter) const;
  Status finish_whole();
  Status give_out();
  Status finish_gathered(int32_t secondary_size);
  Status allocate_full();
  Status copy_out(std::span<const std::byte> rows);
  Status keep_secondary(std::span<const std::byte> rows, int32_t secondary_size);

  Owner owner_;
  Home home_;
  UnitLayout layout_;
  DTypePolicy dtypes_;
  Packer stored_;   // over layout_
  Packer compute_;  // likewise
  std::vector<size_t> numbers_;
  bool replicated_ = false;
  bool whole_ = false;
  int32_t shard_rank_ = 0;
  std::shared_ptr<Buffer> shard_;      // co-owned by a transport that reads it
  std::shared_ptr<Buffer> secondary_;  // likewise
  std::unique_ptr<Gather> gather_;
  Buffer full_memory_;                      // where the host brings none; kRagged: the rows
  std::vector<std::span<std::byte>> full_;  // empty spans while not there
  bool host_memory_ = false;                // full_ is of the host
  bool has_full_ = false;                   // and holds the parameters
};

}  // namespace shardwright::hsdp::internal
