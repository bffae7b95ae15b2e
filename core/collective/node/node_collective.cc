// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes of one machine, through their memory. An operation is one round or more: each
// rank lays what it calls and the first of its bytes into its box and waits for the boxes of all.
// Every rank then makes the same checks on the same operations, so all come to the same end; what
// does not fit one box goes through as many as the largest needs.
#include <algorithm>
#include <utility>

#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"
#include "core/collective/node/node_members_internal.h"
#include "core/collective/round_collective_internal.h"
#include "core/concurrency/cancellation.h"

namespace shardwright::collective {
namespace {

using internal::Kind;
using internal::NodeMembers;
using internal::Operation;
using internal::Slot;
using internal::sum_before;

// Bytes that a rank has for others.
uint64_t sent_bytes(const Operation& operation, size_t rank) {
  switch (operation.kind) {
    case Kind::kBarrier:
      return 0;
    case Kind::kBroadcast:
      return std::cmp_equal(operation.root, rank) ? operation.out_bytes : 0;
    case Kind::kScatterV:
      return std::cmp_equal(operation.root, rank) ? operation.in_bytes : 0;
    case Kind::kAllReduce:
      return operation.value_count * sizeof(int64_t);
    case Kind::kAllGather:
    case Kind::kAllGatherV:
    case Kind::kGatherV:
    case Kind::kAllToAllV:
      return operation.in_bytes;
  }
  return 0;
}

// Where the bytes of one rank go on another: those from `begin` on, `size` of them, to `to`.
struct Part {
  uint64_t begin = 0;
  uint64_t size = 0;
  uint64_t to = 0;
};

class NodeCollective final : public internal::RoundCollective {
 public:
  NodeCollective(std::shared_ptr<Collective> inner, std::unique_ptr<NodeMembers> members)
      : inner_(std::move(inner)), members_(std::move(members)), operations_(members_->size()) {
    reduced_.reserve(NodeMembers::kBoxBytes / sizeof(int64_t));  // all but large ones need no more
  }

  int32_t rank() const override { return inner_->rank(); }
  int32_t size() const override { return inner_->size(); }
  std::string_view name() const override { return "node"; }
  const void* group() const override { return inner_->group(); }
  void abort(const Status& cause) noexcept override {
    if (!members_->is_own_process()) return;
    members_->fail(cause);
    inner_->abort(cause);
  }

 private:
  // Any failure but that of an argument ends the group for all: boxes are no longer in step.
  Status take_part(const Slot& slot) override {
    if (!members_->is_own_process()) {
      return failed_precondition(
          "a process that was forked has no part in the collective of the process that it was "
          "forked of; make one in it");
    }
    bool is_sound = false;
    Status status = without_exceptions("an operation between ranks", [&] {
      SHW_RETURN_IF_ERROR(members_->failure());
      return run(slot, &is_sound);
    });
    if (status.ok() || is_sound) return status;
    members_->fail(status);
    inner_->abort(status);
    return status;
  }

  // *is_sound: what comes after a failure is in step.
  Status run(const Slot& slot, bool* is_sound) {
    const int64_t timeout_ns = slot.operation.call.timeout_ns;
    const int64_t until_ns = internal::end_of(timeout_ns);
    const std::span<const std::byte> sent = bytes_of(slot);
    SHW_RETURN_IF_ERROR(pass_box(slot, sent, until_ns));
    for (size_t rank = 0; rank < operations_.size(); ++rank)
      operations_[rank] = members_->operation(rank);
    *is_sound = true;
    SHW_RETURN_IF_ERROR(internal::check_arguments(operations_));
    *is_sound = false;
    SHW_RETURN_IF_ERROR(internal::check_in_step(operations_));
    *is_sound = true;
    SHW_RETURN_IF_ERROR(internal::check_parts(operations_));
    uint64_t most = 0;
    for (size_t rank = 0; rank < operations_.size(); ++rank)
      most = std::max(most, sent_bytes(operations_[rank], rank));
    *is_sound = false;
    reduced_.resize(slot.values.size());
    Status moved = take(slot, 0);
    for (uint64_t begin = NodeMembers::kBoxBytes; begin < most; begin += NodeMembers::kBoxBytes) {
      SHW_RETURN_IF_ERROR(pass_box(slot, rest_of(sent, begin), until_ns));
      Status more = take(slot, begin);
      if (moved.ok()) moved = std::move(more);
    }
    *is_sound = true;
    if (moved.ok()) std::ranges::copy(reduced_, slot.values.begin());
    return moved;
  }

  static std::span<const std::byte> rest_of(std::span<const std::byte> bytes, uint64_t begin) {
    return bytes.subspan(static_cast<size_t>(std::min<uint64_t>(begin, bytes.size())));
  }

  std::span<const std::byte> bytes_of(const Slot& slot) const {
    std::span<const std::byte> bytes = slot.in;
    if (slot.operation.kind == Kind::kBroadcast) bytes = slot.out;
    if (slot.operation.kind == Kind::kAllReduce) bytes = std::as_bytes(slot.values);
    return bytes.first(
        std::min<size_t>(bytes.size(), static_cast<size_t>(sent_bytes(slot.operation, own()))));
  }

  Status pass_box(const Slot& slot, std::span<const std::byte> bytes, int64_t until_ns) {
    members_->put(slot.operation);
    copy_bytes(bytes.first(std::min<size_t>(bytes.size(), NodeMembers::kBoxBytes)),
               members_->own_box());
    members_->publish();
    return members_->wait(until_ns, slot.operation.call.timeout_ns);
  }

  // What the boxes have for this rank; they hold the bytes from `begin` on of each rank.
  Status take(const Slot& slot, uint64_t begin) {
    if (slot.operation.kind == Kind::kAllReduce) return reduce(slot, begin);
    for (size_t from = 0; from < operations_.size(); ++from) {
      const uint64_t sent = sent_bytes(operations_[from], from);
      const Part part = part_from(from);
      const uint64_t first = std::max(begin, part.begin);
      const uint64_t last =
          std::min({begin + NodeMembers::kBoxBytes, sent, part.begin + part.size});
      if (first >= last) continue;
      copy_bytes(members_->box(from).subspan(first - begin, last - first),
                 slot.out.subspan(part.to + (first - part.begin)));
    }
    return {};
  }

  // The bytes of `from` that are for this rank, after the checks.
  Part part_from(size_t from) const {
    const Operation& mine = operations_[own()];
    const Operation& theirs = operations_[from];
    switch (mine.kind) {
      case Kind::kBarrier:
      case Kind::kAllReduce:
        return {};
      case Kind::kBroadcast:
        return {0, from == own() ? 0 : theirs.out_bytes, 0};
      case Kind::kAllGather:
        return {0, theirs.in_bytes, from * theirs.in_bytes};
      case Kind::kAllGatherV:
        return {0, theirs.in_bytes, sum_before(mine.sizes, from)};
      case Kind::kGatherV:
        if (std::cmp_not_equal(mine.root, own())) return {};
        return {0, theirs.in_bytes, sum_before(mine.sizes, from)};
      case Kind::kScatterV:
        if (std::cmp_not_equal(mine.root, from)) return {};
        return {sum_before(theirs.sizes, own()), theirs.sizes[own()], 0};
      case Kind::kAllToAllV:
        return {sum_before(theirs.sizes, own()), theirs.sizes[own()],
                sum_before(mine.out_sizes, from)};
    }
    return {};
  }

  // Into memory aside: the values of a sum that does not fit stay as they are.
  Status reduce(const Slot& slot, uint64_t begin) {
    const auto first = static_cast<size_t>(begin / sizeof(int64_t));
    const size_t count =
        std::min<size_t>(slot.values.size() - first, NodeMembers::kBoxBytes / sizeof(int64_t));
    const auto out = std::span(reduced_).subspan(first, count);
    for (size_t i = 0; i < count; ++i) {
      out[i] = value(0, i);
      for (size_t rank = 1; rank < operations_.size(); ++rank) {
        if (!internal::reduce_value(slot.operation.reduction, value(rank, i), &out[i]))
          return internal::sum_too_large(first + i, operations_.size());
      }
    }
    return {};
  }

  int64_t value(size_t rank, size_t i) const {
    int64_t found = 0;
    const auto bytes = members_->box(rank).subspan(i * sizeof(found), sizeof(found));
    copy_bytes(bytes, std::as_writable_bytes(std::span(&found, 1)));
    return found;
  }

  size_t own() const { return members_->rank(); }

  // Co-owned with whoever made this of it.
  const std::shared_ptr<Collective> inner_;
  const std::unique_ptr<NodeMembers> members_;
  std::vector<Operation> operations_;  // of the round, by rank
  std::vector<int64_t> reduced_;       // by a reduction
};

}  // namespace

Result<std::shared_ptr<Collective>> make_node_collective(std::shared_ptr<Collective> inner,
                                                         const Call& call) {
  SHW_ASSIGN_OR_RETURN(std::unique_ptr<NodeMembers> members, NodeMembers::meet(*inner, call));
  if (members == nullptr) return inner;
  return std::shared_ptr<Collective>(
      std::make_shared<NodeCollective>(std::move(inner), std::move(members)));
}

}  // namespace shardwright::collective
