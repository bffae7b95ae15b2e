// SPDX-License-Identifier: Apache-2.0
//
// Communicator: collectives over elements of tensors, asynchronous, in the memory of a device;
// what HSDP gathers and reduces with (Collective moves bytes of the host). All ranks issue the same
// operations in the same order, each from one thread at a time; ranks out of step get ABORTED with
// details rank, expected and found. What an operation reads and writes stays as it is until its
// Work was waited for, or, where that failed or was not done, until the Work is destroyed. An
// operation that fails, where it is issued or later, ends the communicator on all ranks as far as
// the transport reaches them; make a new one then. Works go before their communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/collective/collective.h"
#include "core/concurrency/cancellation.h"
#include "core/tensor/dtype.h"

namespace shardwright::collective {

namespace internal {
class OperationRooms;
}  // namespace internal

enum class OperationKind : int32_t {
  kAllGather = 0,
  kAllToAll = 1,
  kReduceScatter = 2,
  kAllReduce = 3,
  kBroadcast = 4,
  kBarrier = 5,
};
std::string_view operation_name(OperationKind kind);  // "unknown" for another value

// Numbers are those of the C surface.
enum class Reduction : int32_t { kSum = 0, kAverage = 1, kScaledSum = 2, kMax = 3, kMin = 4 };

// Bits of capabilities(), as in the C surface.
enum CommunicatorCapability : uint64_t {
  kCanAverage = 1,        // Reduction::kAverage
  kCanScaleSum = 2,       // Reduction::kScaledSum: each input times `scale`, then the sum
  kInPlaceAllGather = 4,  // `in` may be this rank's part of `out`
  kOrderedSum = 8,        // sums in rank order: the result does not depend on who comes when
  kUnevenAllToAll = 16,   // parts of different sizes
  kReachesHostMemory = 32,
  kReachesDeviceMemory = 64,
  kHasRegisteredMemory = 128,
  kIsAsynchronous = 256,  // an operation is issued without waiting for other ranks
};

// One operation. count: elements that one rank contributes to each part (the size of a part, not of
// the whole). sequence, unit, count, dtype and reduction are equal on all ranks. An operation that
// has not ended timeout_ns after it was issued, because other ranks did not come, is
// DEADLINE_EXCEEDED naming it and, where the transport knows them, those ranks.
struct CommunicatorCall {
  uint64_t sequence = 0;
  uint64_t unit = 0;  // whose operation this is; for errors
  uint64_t count = 0;
  DType dtype = DType::kFloat32;
  Reduction reduction = Reduction::kSum;
  double scale = 1.0;       // of kScaledSum
  uint64_t stream = 0;      // of the device, on which the inputs are ready
  int64_t timeout_ns = -1;  // negative = no limit
  // Equal on all ranks like the numbers above: what those who make an operation of others want
  // compared.
  uint32_t tag = 0;
  // What must live until the transport has let go of `in` and `out`, which for an operation that
  // was given up may be later than its Work goes; may be null. Co-owned by the operation.
  std::shared_ptr<const void> memory{};
};

// An operation under way. Used by one thread at a time. Destroying one that has not ended gives it
// up without waiting for other ranks: where they still need this one, the communicator has failed.
class Work {
 public:
  virtual ~Work() = default;
  // Blocks until the operation has ended; true then, false after timeout_ns (negative = no limit
  // but that of the call, which is DEADLINE_EXCEEDED). Its failure, again at each further call. An
  // operation may end well here that another rank gave up after all its bytes were sent: then the
  // next one has the failure.
  virtual Result<bool> wait(int64_t timeout_ns) = 0;
  // As wait(0), but moves nothing on that other ranks would have to see in the same order.
  virtual Result<bool> test() = 0;
  // A stream of the device goes on after the operation; host memory: waits. Failures as wait.
  virtual Status order(uint64_t stream);
};
using WorkPtr = std::unique_ptr<Work>;

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int32_t rank() const = 0;
  virtual int32_t size() const = 0;
  virtual std::string_view name() const = 0;
  virtual uint64_t capabilities() const = 0;
  bool can(CommunicatorCapability what) const { return (capabilities() & what) != 0; }

  // in: count elements; out: those of all ranks in rank order. in and out of this and the others
  // have no byte in common but where a capability says so.
  virtual Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                                     std::span<std::byte> out) = 0;
  // in and out: count elements for and from each rank.
  virtual Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                                     std::span<std::byte> out) = 0;
  // in: count elements for each rank; out: count elements. Where a transport has none of its own:
  // all_to_all, then the parts added in rank order.
  virtual Result<WorkPtr> reduce_scatter(const CommunicatorCall& call,
                                         std::span<const std::byte> in, std::span<std::byte> out);
  // In place, count elements. Without one: reduce_scatter of equal parts and all_gather; the second
  // begins in wait, so that ranks wait for such works in one order.
  virtual Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data);
  // In place, count elements. Without one: all_gather.
  virtual Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                                    int32_t root);
  virtual Result<WorkPtr> barrier(const CommunicatorCall& call);
  // Wakes all that wait, here and on other ranks as far as the transport reaches them; they return
  // cause. Needs no memory. Thread-safe.
  virtual void abort(const Status& cause) noexcept = 0;

 private:
  const std::shared_ptr<internal::OperationRooms>& rooms();

  // Of operations that are made of others; made with the first, co-owned by their memory.
  std::shared_ptr<internal::OperationRooms> rooms_;
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

// world_size ranks in one process, one member per thread. A member that is destroyed while others
// wait for it makes them return ABORTED naming its rank. Whoever waits for an operation that all
// have issued moves the bytes, also those of ranks that do not wait yet.
std::vector<CommunicatorPtr> make_thread_communicators(int32_t world_size);
// One rank of world_size that moves nothing and always succeeds; out is left as it is. For
// estimates and for checks of what would be issued, see fake/fake_communicator.h.
CommunicatorPtr make_fake_communicator(int32_t rank, int32_t world_size);
// inner behind an emulated link of this rank, one operation after the other: each ends latency_ns
// after its bytes have come, at bytes_per_second (0 = at once), and not before inner's. No
// processor is used meanwhile. clock outlives it.
CommunicatorPtr make_delayed_communicator(CommunicatorPtr inner, int64_t latency_ns,
                                          double bytes_per_second,
                                          const Clock& clock = real_clock());
// Over the host's byte collective: works everywhere, blocks where an operation is issued.
CommunicatorPtr make_communicator_over(std::shared_ptr<Collective> inner);

}  // namespace shardwright::collective
