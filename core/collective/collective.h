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
  // Wakes all ranks that wait in this collective; they return cause. Needs no memory. Thread-safe.
  virtual void abort(const Status& cause) noexcept = 0;
};

// What a step gathered: the bytes of all ranks one after the other, each behind its header. It may
// be used again and again; with enough room in it a step needs no memory to learn what others bring.
class Gathered {
 public:
  // Room for `world` ranks that bring at most bytes_each. May throw std::bad_alloc.
  void reserve(size_t world, size_t bytes_each);
  size_t size() const { return sizes_.size(); }
  // What rank `from` brought.
  std::span<const std::byte> part(size_t from) const;

 private:
  friend class Exchange;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  std::vector<uint64_t> sizes_;   // with headers
  std::vector<uint64_t> begins_;  // in received_, behind the headers
};

// What the pipelines use: typed steps over a Collective, each with a tag and a deadline, each
// ending with an agreed status. A rank that has failed still takes part, so that nobody waits for
// it. When the transport itself fails, ranks are out of step (ABORTED with details expected,
// found, sequence, tag), this rank's own words do not come back as it said them (DATA_LOSS), or
// memory for what others bring runs out, the exchange is broken: it aborts the collective, so that
// nobody waits, and every later step returns that failure. Steps never throw. One thread at a time.
class Exchange {
 public:
  // timeout_ns: per operation, negative = no limit.
  Exchange(Collective& collective, int64_t timeout_ns);
  int32_t rank() const { return collective_.rank(); }
  int32_t size() const { return collective_.size(); }
  bool is_coordinator() const { return rank() == 0; }
  // True after a failure of the transport: what the other ranks know is then unknown.
  bool broken() const { return !broken_.ok(); }
  // Whether the last step ended because a rank told that it had failed, with this code (0 = none
  // did): then all ranks know so, even where the exchange broke before it could say why.
  StatusCode told_failure() const { return told_failure_; }

  // Everybody gives bytes and its own status so far; everybody gets all bytes (rank order) or, when
  // a rank failed, the status of the lowest failing rank (details rank, and how many others
  // failed). tag names the step.
  Result<std::vector<std::vector<std::byte>>> gather_all(uint32_t tag, const Status& mine,
                                                         std::span<const std::byte> bytes) noexcept;
  // The same into memory of the caller.
  Status gather(uint32_t tag, const Status& mine, std::span<const std::byte> bytes,
                Gathered* all) noexcept;
  // The same without bytes.
  Status agree(uint32_t tag, const Status& mine) noexcept;
  // Coordinator's bytes (or its failure) reach all; they lie in *room until the next step with it.
  // A room with capacity for them and kHeaderBytes makes the step need no memory.
  static constexpr size_t kHeaderBytes = 16;
  Result<std::span<const std::byte>> broadcast(uint32_t tag, const Status& mine,
                                               std::span<const std::byte> bytes,
                                               std::vector<std::byte>* room) noexcept;
  // One part per rank from the coordinator (emulated through broadcast where there is no scatter).
  Result<std::vector<std::byte>> scatter(uint32_t tag, const Status& mine,
                                         std::span<const std::vector<std::byte>> parts) noexcept;
  void abort(const Status& cause) noexcept;

 private:
  // What all ranks say at the beginning of a step.
  struct Opening {
    uint64_t sequence = 0;
    uint32_t tag = 0;
    uint32_t status = 0;
    uint64_t bytes = 0;
    bool operator==(const Opening&) const = default;
  };
  // Runs a step; what it throws breaks the exchange.
  template <typename Step>
  auto whole(const Step& step) noexcept -> decltype(step());
  // Every step begins here: all ranks tell what they are at, how they are, and how many bytes they
  // bring. Afterwards openings_ holds that.
  Status open_step(uint32_t tag, const Status& mine, uint64_t bytes);
  Status check_openings(const Opening& own);
  // What this rank sends: header and bytes. Made before the step opens, so that all hear of it when
  // there is no memory.
  Status compose(uint32_t tag, std::span<const std::byte> bytes, std::vector<std::byte>* payload);
  Status failure_of_all(const Status& mine);
  Status receive_all(Gathered* all);
  Result<std::span<const std::byte>> broadcast_into(uint32_t tag, const Status& mine,
                                                    std::span<const std::byte> bytes,
                                                    std::vector<std::byte>* room);
  Status check_header(size_t rank, std::span<const std::byte> payload);
  Status break_off(Status failure) noexcept;

  Collective& collective_;
  Call call_;  // of the current step; its number is that of the next one between steps
  std::vector<Opening> openings_;  // one per rank
  Status broken_;
  StatusCode told_failure_ = StatusCode::kOk;
};

// One rank.
std::unique_ptr<Collective> make_single_collective();
// world_size ranks in one process, one member per thread. Members share state; each is used by one
// thread at a time. A member that is destroyed while others wait makes them return ABORTED naming
// its rank.
std::vector<std::unique_ptr<Collective>> make_thread_collectives(int32_t world_size);

}  // namespace shardwright::collective
