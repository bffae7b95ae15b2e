// SPDX-License-Identifier: Apache-2.0
//
// Operations that a transport may lack, made of all_gather and all_to_all. Each is a row of steps:
// an operation of the transport, then what this rank does with what came. The first is issued where
// the operation is, the others where it is waited for. A rank that cannot go on aborts, because
// others cannot know.
#include "core/collective/communicator.h"

#include <deque>
#include <functional>
#include <new>

#include "core/base/checked.h"
#include "core/base/copy_bytes.h"
#include "core/collective/issue.h"
#include "core/collective/operation_rooms_internal.h"
#include "core/collective/tensor_operation.h"

namespace shardwright::collective {
namespace {

struct WorkStep {
  std::function<Result<WorkPtr>()> issue;
  std::function<Status()> finish;  // may be none
};

class SteppedWork final : public Work {
 public:
  SteppedWork(Communicator& communicator, std::deque<WorkStep> steps)
      : communicator_(communicator), steps_(std::move(steps)) {}

  Status begin() {
    SHW_ASSIGN_OR_RETURN(under_way_, steps_.front().issue());
    return {};
  }

  Result<bool> wait(int64_t timeout_ns) override {
    CallControl patience;
    if (timeout_ns >= 0) patience.end_within(real_clock().monotonic_ns(), timeout_ns);
    while (!steps_.empty()) {
      const Result<bool> ended = advance([&] { return under_way_->wait(patience.remaining_ns()); });
      if (!ended.ok() || !*ended) return ended;
      if (!steps_.empty()) SHW_RETURN_IF_ERROR(attempt([this] { return begin(); }));
    }
    return true;
  }

  Result<bool> test() override {
    SHW_RETURN_IF_ERROR(failure_);
    // Another step would have to be issued, and by all ranks in one order.
    if (under_way_ == nullptr) return steps_.empty();
    const Result<bool> ended = advance([this] { return under_way_->test(); });
    if (!ended.ok() || !*ended) return ended;
    return steps_.empty();
  }

 private:
  // The step under way: whether it has ended and been finished.
  template <typename Wait>
  Result<bool> advance(const Wait& wait) {
    SHW_RETURN_IF_ERROR(failure_);
    if (under_way_ == nullptr) return true;  // test() has finished it
    const Result<bool> ended = wait();
    if (!ended.ok()) failure_ = ended.status();
    if (!ended.ok() || !*ended) return ended;
    under_way_ = nullptr;
    if (steps_.front().finish != nullptr)
      SHW_RETURN_IF_ERROR(attempt([this] { return steps_.front().finish(); }));
    steps_.pop_front();
    return true;
  }

  // What fails on this rank alone ends the communicator.
  template <typename Body>
  Status attempt(const Body& body) {
    failure_ = without_exceptions("finishing a collective", body);
    if (!failure_.ok()) communicator_.abort(failure_);
    return failure_;
  }

  Communicator& communicator_;
  std::deque<WorkStep> steps_;  // that have not ended
  WorkPtr under_way_;
  Status failure_;
};

using RoomsPtr = std::shared_ptr<internal::OperationRooms>;  // co-owned by communicator and rooms

// Memory of an operation made of others, and what its caller wants kept as long.
struct OperationRoom {
  OperationRoom(RoomsPtr of, uint64_t size_bytes, const CommunicatorCall& call)
      : rooms(std::move(of)),
        block(rooms->take(static_cast<size_t>(size_bytes))),
        size(static_cast<size_t>(size_bytes)),
        outer(call.memory) {}
  OperationRoom(const OperationRoom&) = delete;
  OperationRoom& operator=(const OperationRoom&) = delete;
  ~OperationRoom() { rooms->give_back(std::move(block)); }
  std::span<std::byte> all() const { return {block.bytes.get(), size}; }

  RoomsPtr rooms;
  internal::OperationRooms::Block block;
  size_t size;
  std::shared_ptr<const void> outer;  // co-owned with the caller
};
using RoomPtr = std::shared_ptr<OperationRoom>;  // co-owned by the steps and the transport

RoomPtr make_room(const RoomsPtr& rooms, uint64_t part_bytes, uint64_t parts,
                  const CommunicatorCall& call) {
  uint64_t size_bytes = 0;
  if (!checked_multiply(part_bytes, parts, &size_bytes)) throw std::bad_alloc();
  return std::make_shared<OperationRoom>(rooms, size_bytes, call);
}

Result<WorkPtr> begin_steps(Communicator& communicator, std::deque<WorkStep> steps) {
  auto work = std::make_unique<SteppedWork>(communicator, std::move(steps));
  SHW_RETURN_IF_ERROR(work->begin());
  return WorkPtr(std::move(work));
}

// The call by which a part of `own` travels; ranks of which one does something else with what comes
// are out of step.
CommunicatorCall call_of_step(const TensorOperation& own, RoomPtr room) {
  CommunicatorCall call = own.call;
  call.tag = operation_tag(own);
  call.memory = std::move(room);
  return call;
}

// all_reduce in equal parts, one summed by each rank; those at the end are padded with zeros, and
// nobody reads what becomes of them.
struct EvenParts {
  RoomPtr whole;  // the padded elements of all, then the sums of all; null where data can be that
  RoomPtr own;    // the sum of this rank's part
  CommunicatorCall call;
};

Result<EvenParts> even_parts(const RoomsPtr& rooms, const TensorOperation& own, uint64_t world) {
  EvenParts parts{nullptr, nullptr, call_of_step(own, nullptr)};
  const bool is_even = own.call.count % world == 0;
  parts.call.count = own.call.count / world + (is_even ? 0 : 1);
  SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes,
                       dtype_packed_bytes(own.call.dtype, static_cast<int64_t>(parts.call.count)));
  parts.own = make_room(rooms, part_bytes, 1, own.call);
  parts.call.memory = parts.own;
  if (is_even) return parts;
  parts.whole = make_room(rooms, part_bytes, world, own.call);
  zero_bytes(copy_bytes(own.out, parts.whole->all()));
  parts.own->outer = parts.whole;
  return parts;
}

}  // namespace

Status Work::order(uint64_t) {
  return wait(-1).status();
}

const RoomsPtr& Communicator::rooms() {
  if (rooms_ == nullptr) rooms_ = std::make_shared<internal::OperationRooms>();
  return rooms_;
}

Result<WorkPtr> Communicator::reduce_scatter(const CommunicatorCall& call,
                                             std::span<const std::byte> in,
                                             std::span<std::byte> out) {
  return issue_or_abort(*this, "reduce_scatter", [&]() -> Result<WorkPtr> {
    const TensorOperation own{OperationKind::kReduceScatter, call, 0, in, out};
    SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes, check_operation(own, rank(), size()));
    const auto world = static_cast<size_t>(size());
    const RoomPtr room = make_room(rooms(), part_bytes, world, call);
    WorkStep step;
    step.issue = [this, exchange = call_of_step(own, room), in, room] {
      return all_to_all(exchange, in, room->all());
    };
    step.finish = [call, out, room, world] { return reduce_parts(call, room->all(), world, out); };
    return begin_steps(*this, {std::move(step)});
  });
}

Result<WorkPtr> Communicator::all_reduce(const CommunicatorCall& call, std::span<std::byte> data) {
  return issue_or_abort(*this, "all_reduce", [&]() -> Result<WorkPtr> {
    const TensorOperation own{OperationKind::kAllReduce, call, 0, {}, data};
    SHW_RETURN_IF_ERROR(check_operation(own, rank(), size()).status());
    SHW_ASSIGN_OR_RETURN(const EvenParts parts,
                         even_parts(rooms(), own, static_cast<uint64_t>(size())));
    const std::span<std::byte> whole = parts.whole == nullptr ? data : parts.whole->all();
    WorkStep sums;
    sums.issue = [this, parts, whole] {
      return reduce_scatter(parts.call, whole, parts.own->all());
    };
    WorkStep shares;
    shares.issue = [this, parts, whole] { return all_gather(parts.call, parts.own->all(), whole); };
    shares.finish = [parts, whole, data] {
      if (parts.whole != nullptr) copy_bytes(whole.first(data.size()), data);
      return Status();
    };
    return begin_steps(*this, {std::move(sums), std::move(shares)});
  });
}

Result<WorkPtr> Communicator::broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                                        int32_t root) {
  return issue_or_abort(*this, "broadcast", [&]() -> Result<WorkPtr> {
    const TensorOperation own{OperationKind::kBroadcast, call, root, {}, data};
    SHW_ASSIGN_OR_RETURN(const uint64_t data_bytes, check_operation(own, rank(), size()));
    const RoomPtr room = make_room(rooms(), data_bytes, static_cast<uint64_t>(size()), call);
    WorkStep step;
    step.issue = [this, gather = call_of_step(own, room), data, room] {
      return all_gather(gather, data, room->all());
    };
    step.finish = [data, room, root] {
      copy_bytes(room->all().subspan(static_cast<size_t>(root) * data.size(), data.size()), data);
      return Status();
    };
    return begin_steps(*this, {std::move(step)});
  });
}

Result<WorkPtr> Communicator::barrier(const CommunicatorCall& call) {
  return issue_or_abort(*this, "barrier", [&]() -> Result<WorkPtr> {
    const RoomPtr room = make_room(rooms(), 1, static_cast<uint64_t>(size()) + 1, call);
    zero_bytes(room->all());
    CommunicatorCall gather = call_of_step({OperationKind::kBarrier, call, 0, {}, {}}, room);
    gather.count = 1;
    gather.dtype = DType::kUint8;
    WorkStep step;
    step.issue = [this, gather, room] {
      return all_gather(gather, room->all().first(1), room->all().subspan(1));
    };
    return begin_steps(*this, {std::move(step)});
  });
}

}  // namespace shardwright::collective
