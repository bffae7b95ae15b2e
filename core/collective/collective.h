// SPDX-License-Identifier: Apache-2.0
//
// Collective: the host's transport between ranks, as byte operations that all ranks call in the
// same order from one thread. Implementations carry bytes; Exchange (exchange.h) makes steps of
// them, so that ranks out of step get ABORTED on all sides instead of mixed data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shardwright::collective {

// Numbers the operation; the implementation may use it to detect ranks out of step.
struct Call {
  uint64_t sequence = 0;
  uint32_t tag = 0;
  int64_t timeout_ns = -1;  // negative = no limit
};

enum class ReduceOperation : int32_t { kMin = 0, kMax = 1, kSum = 2 };

class Collective {
 public:
  virtual ~Collective() = default;
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  virtual std::string_view name() const = 0;
  // Equal for the members of one group that live in this process; null when no other member does.
  virtual const void* group() const { return nullptr; }
  virtual Status barrier(const Call& call) = 0;
  virtual Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) = 0;
  // out.size() == in.size() * size(), rank order.
  virtual Status all_gather(const Call& call, std::span<const std::byte> in,
                            std::span<std::byte> out) = 0;
  // sizes: bytes of each rank, known to all; out holds them back to back.
  virtual Status all_gather_v(const Call& call, std::span<const std::byte> in,
                              std::span<std::byte> out, std::span<const uint64_t> sizes) = 0;
  // The root gets sizes[rank] bytes of each rank back to back; only it has out and sizes. A
  // transport without one (has_gather_v() false on all ranks) uses this one, by which everybody
  // gets everything; where a rank lacks memory for that, or sizes do not fit, it aborts.
  virtual bool has_gather_v() const { return false; }
  virtual Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                          std::span<const uint64_t> sizes, int32_t root);
  // The root gives each rank sizes[rank] bytes, which lie back to back in its `in`; only it has
  // in and sizes, and each rank knows the size of its own part. Without one likewise.
  virtual bool has_scatter_v() const { return false; }
  virtual Status scatter_v(const Call& call, std::span<const std::byte> in,
                           std::span<const uint64_t> sizes, std::span<std::byte> out, int32_t root);
  // Each rank sends in_sizes[r] bytes to rank r and receives out_sizes[r] from it, itself included;
  // parts lie back to back in rank order, in and out have no byte in common. Every rank knows its
  // two rows: out_sizes[s] here is in_sizes[here] on rank s. Without one likewise.
  virtual bool has_all_to_all_v() const { return false; }
  virtual Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                              std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                              std::span<const uint64_t> out_sizes);
  // SUM that does not fit is OUT_OF_RANGE.
  virtual Status all_reduce_i64(const Call& call, std::span<int64_t> values,
                                ReduceOperation operation) = 0;
  // Wakes all ranks that wait in this collective; they return cause. Needs no memory. Thread-safe.
  virtual void abort(const Status& cause) noexcept = 0;
};

// One rank.
std::unique_ptr<Collective> make_single_collective();
// world_size ranks in one process, one member per thread. Members share state; each is used by one
// thread at a time. A member that is destroyed while others wait makes them return ABORTED naming
// its rank.
std::vector<std::unique_ptr<Collective>> make_thread_collectives(int32_t world_size);
// The ranks of `inner` through the memory of their machine, where all of them run on one (2 to 64
// ranks) and reach each other's; else inner itself. What takes a network a fraction of a
// millisecond takes microseconds there. Collective over inner: one all_gather with that call. Its
// failures, and UNAVAILABLE when the process of a rank ends meanwhile; a rank whose process ends
// later is named by all that wait for it. The result aborts inner when it is aborted.
Result<std::shared_ptr<Collective>> make_node_collective(std::shared_ptr<Collective> inner,
                                                         const Call& call);

}  // namespace shardwright::collective
