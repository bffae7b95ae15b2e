// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/collective/c10d/group_operation_internal.h"
#include "core/collective/c10d/transfer_internal.h"

namespace shardwright::collective::internal {
namespace {

constexpr int kHeadingTag = 1;
constexpr uint64_t kByteTags = uint64_t{1} << 30U;  // and as many tags of bytes above it

Heading heading_of(const TensorOperation& own) {
  return {.sequence = own.call.sequence,
          .unit = own.call.unit,
          .count = own.call.count,
          .scale = own.call.scale,
          .kind = static_cast<int32_t>(own.kind),
          .dtype = static_cast<int32_t>(own.call.dtype),
          .reduction = static_cast<int32_t>(own.call.reduction),
          .root = own.root,
          .tag = own.call.tag};
}

TensorOperation operation_of(const Heading& heading) {
  TensorOperation made;
  made.kind = static_cast<OperationKind>(heading.kind);
  made.call.sequence = heading.sequence;
  made.call.unit = heading.unit;
  made.call.count = heading.count;
  made.call.dtype = static_cast<DType>(heading.dtype);
  made.call.reduction = static_cast<Reduction>(heading.reduction);
  made.call.scale = heading.scale;
  made.call.tag = heading.tag;
  made.root = heading.root;
  return made;
}

// Of the bytes of an operation: another one for operations that differ, mostly.
int byte_tag(const Heading& heading, uint64_t number) {
  uint64_t hash = weight_of(number);
  for (const uint64_t part :
       {heading.sequence, heading.unit, heading.count, uint64_t{heading.tag},
        static_cast<uint64_t>(heading.kind) << 32U | static_cast<uint32_t>(heading.dtype)}) {
    hash = weight_of(hash ^ part);
  }
  return static_cast<int>(kByteTags | ((hash >> 8U) & (kByteTags - 1)));
}

std::span<const std::byte> part_of(std::span<const std::byte> all, int32_t rank, size_t bytes) {
  return all.subspan(static_cast<size_t>(rank) * bytes, bytes);
}

}  // namespace

Transfer::Transfer(SideGroup& group, TensorOperation own, uint64_t part_bytes, uint64_t number)
    : group_(group),
      own_(std::move(own)),
      part_bytes_(static_cast<size_t>(part_bytes)),
      number_(number),
      mine_(heading_of(own_)),
      theirs_(static_cast<size_t>(group.size())),
      late_rank_(group.rank()) {}

void Transfer::begin() {
  const bool is_gather = own_.kind == OperationKind::kAllGather;
  const auto sent_to = [&](int32_t rank) {
    return is_gather ? own_.in : part_of(own_.in, rank, part_bytes_);
  };
  const auto place_of = [&](int32_t rank) {
    return own_.out.subspan(static_cast<size_t>(rank) * part_bytes_, part_bytes_);
  };
  const int tag = byte_tag(mine_, number_);
  for (int32_t distance = 1; distance < group_.size(); ++distance) {
    // Each rank begins with another one.
    const int32_t to = (group_.rank() + distance) % group_.size();
    const int32_t from = (group_.rank() + group_.size() - distance) % group_.size();
    const std::span theirs(&theirs_[static_cast<size_t>(from)], 1);
    headings_.push_back(receive(from, std::as_writable_bytes(theirs), kHeadingTag));
    if (part_bytes_ > 0) bytes_.push_back(receive(from, place_of(from), tag));
    send(to, std::as_bytes(std::span(&mine_, 1)), kHeadingTag);
    if (part_bytes_ > 0) send(to, sent_to(to), tag);
  }
  const auto own_part = sent_to(group_.rank());
  const auto place = place_of(group_.rank());
  if (own_part.data() != place.data()) copy_bytes(own_part, place);
}

void Transfer::send(int32_t to, std::span<const std::byte> bytes, int tag) {
  std::vector<at::Tensor> tensors{bytes_at(const_cast<std::byte*>(bytes.data()), bytes.size())};
  sent_.push_back({to, group_.backend().send(tensors, to, tag)});
}

Transfer::Handle Transfer::receive(int32_t from, std::span<std::byte> bytes, int tag) {
  std::vector<at::Tensor> tensors{bytes_at(bytes.data(), bytes.size())};
  return {from, group_.backend().recv(tensors, from, tag)};
}

Status Transfer::wait() {
  SHW_RETURN_IF_ERROR(wait_for(headings_));
  SHW_RETURN_IF_ERROR(compare());
  SHW_RETURN_IF_ERROR(wait_for(bytes_));
  return wait_for(sent_);
}

// Without a limit but that of the backend: one that passes closes its connections.
Status Transfer::wait_for(Handles& handles) {
  for (const Handle& handle : handles) {
    late_rank_ = handle.rank;
    if (!handle.work->wait()) return aborted("the operation was given up");
  }
  return {};
}

// The lower of two ranks is the one that the other is measured by, on both.
Status Transfer::compare() const {
  const auto here = static_cast<size_t>(group_.rank());
  for (size_t rank = 0; rank < theirs_.size(); ++rank) {
    if (rank == here) continue;
    const TensorOperation other = operation_of(theirs_[rank]);
    SHW_RETURN_IF_ERROR(rank < here ? check_same(other, rank, own_, here)
                                    : check_same(own_, here, other, rank));
  }
  return {};
}

void Transfer::interrupt() noexcept {
  try {
    for (const Handles* handles : {&headings_, &bytes_, &sent_}) {
      for (const Handle& handle : *handles) handle.work->abort();
    }
  } catch (...) {
    // The wait ends by the limit of the backend.
  }
}

}  // namespace shardwright::collective::internal
