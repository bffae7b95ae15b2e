// SPDX-License-Identifier: Apache-2.0
//
// Transfer: the bytes of one operation of a communicator between this rank and all others, by the
// point-to-point operations of a Gloo backend, from and into the memory of the caller.
//
//   1. where the operation is issued, every rank sends a heading and its bytes to each other one,
//      and posts what it receives;
//   2. the headings are compared when they have come. Bytes travel under a tag that is made of the
//      heading and the number of the operation, so that those of ranks out of step never meet: Gloo
//      ends the process over a message longer than what waits for it. (Two that differ have one tag
//      in 2^30.)
//   3. then the bytes are waited for.
//
// Gloo touches the memory of an operation as long as its handle lives and not after that, so the
// destructor is where memory is let go. wait() runs on one thread, begin() before it; interrupt()
// and late_rank() on any.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/collective/c10d/side_group_internal.h"
#include "core/collective/tensor_operation.h"

namespace shardwright::collective::internal {

// What a rank shows the others of an operation.
struct Heading {
  uint64_t sequence = 0;
  uint64_t unit = 0;
  uint64_t count = 0;
  double scale = 0;
  int32_t kind = 0;
  int32_t dtype = 0;
  int32_t reduction = 0;
  int32_t root = 0;
  uint32_t tag = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(Heading) == 56);

class Transfer {
 public:
  // `number` of the operation in its communicator. The memory of `own` fits `part_bytes`.
  Transfer(SideGroup& group, TensorOperation own, uint64_t part_bytes, uint64_t number);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() = default;

  const TensorOperation& operation() const { return own_; }
  uint64_t number() const { return number_; }

  // Step 1. Throws what the backend throws.
  void begin();
  // Steps 2 and 3. Blocks. ABORTED where ranks are out of step, or after an interruption; throws
  // what the backend throws.
  Status wait();
  void interrupt() noexcept;
  // The rank that wait() waits for.
  int32_t late_rank() const { return late_rank_; }

 private:
  struct Handle {
    int32_t rank = 0;
    c10::intrusive_ptr<::c10d::Work> work;
  };
  using Handles = std::vector<Handle>;

  void send(int32_t to, std::span<const std::byte> bytes, int tag);
  Handle receive(int32_t from, std::span<std::byte> bytes, int tag);
  Status wait_for(Handles& handles);
  Status compare() const;

  SideGroup& group_;
  const TensorOperation own_;
  const size_t part_bytes_;
  const uint64_t number_;
  Heading mine_;
  std::vector<Heading> theirs_;  // by rank
  Handles headings_;             // what is received
  Handles bytes_;
  Handles sent_;
  std::atomic<int32_t> late_rank_;
};

}  // namespace shardwright::collective::internal
