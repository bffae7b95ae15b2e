// SPDX-License-Identifier: Apache-2.0
//
// Collective: the host's transport between ranks, as byte operations that all ranks call in the
// same order from one thread. Implementations carry bytes; Exchange (below) adds the 16-byte header
// {sequence u64, tag u32, status u32} to every payload, so that ranks out of step get ABORTED on
// all sides instead of mixed data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  // SUM that does not fit is OUT_OF_RANGE.
  virtual Status all_reduce_i64(const Call& call, std::span<int64_t> values,
                                ReduceOperation operation) = 0;
  // Wakes all ranks that wait in this collective; they return cause. Thread-safe.
  virtual void abort(const Status& cause) = 0;
};

// What the pipelines use: typed steps over a Collective, each with a tag and a deadline, each
// ending with an agreed status. A rank that has failed still takes part, so that nobody waits for
// it. When the transport itself fails or ranks are out of step (ABORTED with details expected,
// found, sequence, tag) the exchange is broken: it aborts the collective and every later step
// returns that failure. One thread at a time.
class Exchange {
 public:
  // timeout_ns: per operation, negative = no limit.
  Exchange(Collective& collective, int64_t timeout_ns);
  int32_t rank() const { return collective_.rank(); }
  int32_t size() const { return collective_.size(); }
  bool is_coordinator() const { return rank() == 0; }
  // True after a failure of the transport: what the other ranks know is then unknown.
  bool broken() const { return !broken_.ok(); }

  // Everybody gives bytes and its own status so far; everybody gets all bytes (rank order) or, when
  // a rank failed, the status of the lowest failing rank (details rank, and how many others
  // failed). tag names the step.
  Result<std::vector<std::vector<std::byte>>> gather_all(uint32_t tag, const Status& mine,
                                                         std::span<const std::byte> bytes);
  // The same without bytes.
  Status agree(uint32_t tag, const Status& mine);
  // Coordinator's bytes (or its failure) reach all.
  Result<std::vector<std::byte>> broadcast(uint32_t tag, const Status& mine,
                                           std::span<const std::byte> bytes);
  // One part per rank from the coordinator (emulated through broadcast where there is no scatter).
  Result<std::vector<std::byte>> scatter(uint32_t tag, const Status& mine,
                                         std::span<const std::vector<std::byte>> parts);
  void abort(const Status& cause);

 private:
  struct Step;
  // Every step begins here: all ranks tell what they are at, how they are, and how many bytes they
  // bring.
  Result<Step> open_step(uint32_t tag, const Status& mine, uint64_t bytes);
  Status check_order(const Step& step);
  Status failure_of_all(const Step& step, const Status& mine);
  Result<std::vector<std::vector<std::byte>>> gather_payloads(const Step& step,
                                                              std::span<const std::byte> bytes);
  Result<std::vector<std::byte>> share_payload(const Step& step, std::span<const std::byte> bytes);
  Status check_header(const Step& step, size_t rank, std::span<const std::byte> payload);
  Status break_off(Status failure);

  Collective& collective_;
  int64_t timeout_ns_;
  uint64_t sequence_ = 0;
  Status broken_;
};

// One rank.
std::unique_ptr<Collective> make_single_collective();
// world_size ranks in one process, one member per thread. Members share state; each is used by one
// thread at a time. A member that is destroyed while others wait makes them return ABORTED naming
// its rank.
std::vector<std::unique_ptr<Collective>> make_thread_collectives(int32_t world_size);

}  // namespace shardwright::collective
