// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/gather_internal.h"
#include "core/hsdp/runtime_internal.h"

namespace shardwright::hsdp::internal {

Result<std::unique_ptr<Gather>> Gather::start(Runtime& runtime, Channel& channel,
                                              const GatherSource& source) {
  auto gather = std::unique_ptr<Gather>(new Gather());
  gather->memory_ = std::make_shared<Memory>();
  Memory& memory = *gather->memory_;
  memory.source = source.memory;
  const uint64_t element_bytes = static_cast<uint64_t>(dtype_bits(source.call.dtype)) / 8;
  const uint64_t part_bytes = source.call.count * element_bytes;
  std::span<const std::byte> part = source.part;
  SHW_ASSIGN_OR_RETURN(memory.gathered, runtime.memory().acquire(
                                            BufferKind::kGathered, source.call.unit,
                                            part_bytes * static_cast<uint64_t>(channel.size())));
  if (source.is_offloaded) {
    SHW_ASSIGN_OR_RETURN(memory.uploaded, runtime.memory().acquire(BufferKind::kCastStaging,
                                                                   source.call.unit, part.size()));
    SHW_RETURN_IF_ERROR(runtime.work().upload(part, memory.uploaded.bytes()));
    part = memory.uploaded.bytes();
  }
  if (source.stored != source.call.dtype) {
    SHW_ASSIGN_OR_RETURN(memory.staging, runtime.memory().acquire(BufferKind::kCastStaging,
                                                                  source.call.unit, part_bytes));
    SHW_RETURN_IF_ERROR(
        runtime.work().cast(source.stored, part, source.call.dtype, memory.staging.bytes()));
    part = memory.staging.bytes();
    memory.uploaded = Buffer();
  }
  ChannelCall call = source.call;
  call.memory = gather->memory_;
  Result<ChannelWork> work = channel.all_gather(call, part, memory.gathered.bytes());
  if (!work.ok()) return runtime.fail(work.status());  // other ranks go on
  gather->work_ = *std::move(work);
  if (device::Lane* lane = runtime.lane(LaneRole::kGather); lane != nullptr) {
    gather->on_lane_ = true;
    gather->step_ = LaneStep::start(
        runtime.device(), lane, [each = gather.get()] { return each->work_.wait(-1).status(); });
  }
  return gather;
}

// A transport may still write into what was given up until its work is gone.
Gather::~Gather() {
  step_ = LaneStep();
  work_.reset();
}

Result<bool> Gather::wait(int64_t timeout_ns) {
  if (work_) {
    SHW_ASSIGN_OR_RETURN(const bool ended,
                         on_lane_ ? step_.wait(timeout_ns) : work_.wait(timeout_ns));
    if (!ended) return false;
    step_ = LaneStep();
    work_.reset();
  }
  memory_->uploaded = Buffer();
  memory_->staging = Buffer();
  return true;
}

}  // namespace shardwright::hsdp::internal
