// SPDX-License-Identifier: Apache-2.0
//
// GroupOperation: one operation of a collective over a side group. It begins with an opening: every
// rank shows rank 0 a record of the same size, whatever the operation is, and rank 0 tells all what
// follows from them. So ranks out of step find that out instead of getting each other's bytes (a
// backend may end the process over a message longer than what waits for it), a rank with arguments
// that make no sense says so to all, and a few bytes travel along. That takes one step to rank 0
// and a tree of them back; reductions and gatherings of Gloo take one per rank and more. Tensors
// are the library's own, never memory of the caller: what was given up may still write. Backends
// throw; what they throw leaves these functions. One thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/result.h"
#include "core/collective/c10d/side_group_internal.h"
#include "core/collective/collective.h"
#include "core/collective/operation_internal.h"

namespace shardwright::collective::internal {

inline constexpr size_t kPayloadLanes = 32;
inline constexpr size_t kPayloadBytes = kPayloadLanes * sizeof(int64_t);
using Payload = std::array<int64_t, kPayloadLanes>;

// What a rank says at the beginning.
struct Opening {
  uint64_t signature = 0;  // equal on all ranks
  uint64_t apart = 0;      // the numbers of all ranks add up to nothing, modulo 2^64
  Status problem;          // of this rank's arguments
  ReduceOperation reduction = ReduceOperation::kSum;  // of the payloads
  Payload payload{};
};

// What all ranks know after it.
struct Opened {
  bool fits = true;  // the numbers apart add up to nothing
  Payload payload{};
};

// An operation, and how long it may take.
struct Wanted {
  Kind kind = Kind::kBarrier;
  uint64_t sequence = 0;
  std::chrono::nanoseconds limit{0};
  uint64_t call = 0;        // as the side group counts them
  uint64_t operations = 0;  // that this call has completed
};

// What a rank shows to all at the beginning of an operation.
struct Record {
  uint64_t signature = 0;
  uint64_t apart = 0;
  uint64_t sequence = 0;
  uint32_t has_problem = 0;
  uint32_t kind = 0;
  Payload payload{};
};
static_assert(sizeof(Record) == 32 + kPayloadBytes);

// What rank 0 says of all records.
struct Verdict {
  enum class Finding : uint32_t { kFits, kApart, kOutOfStep, kProblem };
  Finding finding = Finding::kFits;
  int32_t rank = 0;                     // of the problem, or the first that is out of step
  std::array<uint32_t, 2> kinds{};      // what rank 0 and that rank call,
  std::array<uint64_t, 2> sequences{};  // and its number
  Payload payload{};                    // reduced
};
static_assert(sizeof(Verdict) == 32 + kPayloadBytes);

class GroupOperation {
 public:
  GroupOperation(SideGroup& group, const Wanted& wanted);

  // INVALID_ARGUMENT on all ranks where one has a problem, with the text of the lowest.
  Result<Opened> open(const Opening& mine);

  // In place.
  Status reduce(at::Tensor& numbers, ReduceOperation operation);
  Status broadcast(at::Tensor& data, int32_t root);
  // Of all ranks, back to back in rank order.
  Result<at::Tensor> gather(const at::Tensor& mine);
  // What all ranks have for all. There is no point-to-point operation here: those cannot be waited
  // for in slices, and one side of them may fail where the other does not.
  Result<at::Tensor> exchange(const at::Tensor& sent, std::vector<int64_t> sent_sizes,
                              std::vector<int64_t> received_sizes);

  // After a failure: false when the side group has to be given up, as ranks may differ in it.
  bool all_ranks_know() const { return all_ranks_know_; }
  // A failure that all ranks have found.
  Status known_to_all(Status failure);
  // After an exception.
  Status transport_failure(std::string_view reason);
  bool transport_failed() const { return transport_failed_; }

 private:
  Status wait(const c10::intrusive_ptr<::c10d::Work>& work);
  bool ends_in_slice(::c10d::Work& work);
  Status check_still_on();
  Status too_late() const;
  Result<Verdict> share(const Record& mine, ReduceOperation reduction);
  Result<Verdict> judge(const Record& mine, ReduceOperation reduction);
  c10::intrusive_ptr<::c10d::Work> begin_broadcast(at::Tensor& there, int32_t root);
  Status out_of_step(const Verdict& verdict) const;
  Status tell_problem(int32_t rank, const Status& problem);
  at::Tensor placed(const at::Tensor& host) const;
  at::Tensor fetched(const at::Tensor& there) const;
  std::chrono::milliseconds backend_limit() const;
  std::chrono::milliseconds left() const;

  SideGroup& group_;
  const Wanted wanted_;
  const std::chrono::steady_clock::time_point until_;
  std::chrono::steady_clock::time_point ended_at_{};  // when the end of the group was seen first
  bool all_ranks_know_ = false;
  bool transport_failed_ = false;
};

// An odd number that looks drawn: were it linear in the rank, sizes that are wrong by -1, -2 and +1
// could add up to nothing.
constexpr uint64_t weight_of(uint64_t rank) {
  uint64_t mixed = (rank + 1) * 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
  return (mixed ^ (mixed >> 31U)) | 1U;
}

at::Tensor bytes_of(std::span<const std::byte> data);
// The memory itself, which outlives the tensor.
at::Tensor bytes_at(std::byte* memory, size_t size_bytes);
at::Tensor numbers_of(std::span<const int64_t> values);
// ABORTED: what a backend threw while this rank did `what`.
Status failed_transport(std::string_view what, int32_t rank, std::string_view reason);

}  // namespace shardwright::collective::internal
