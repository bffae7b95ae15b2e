// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/unit_group_internal.h"

#include <fmt/format.h>

#include "core/hsdp/runtime_internal.h"

namespace shardwright::hsdp::internal {
namespace {

uint64_t bytes_of(DType dtype, int64_t elements) {
  return static_cast<uint64_t>(dtype_bits(dtype)) / 8 * static_cast<uint64_t>(elements);
}

// Known before anything is allocated, and on all ranks: what the device would not convert later.
Status check_conversions(const device::LaneDevice& device, const std::string& unit,
                         const DTypePolicy& dtypes) {
  if (device.is_host()) return {};
  for (const auto& [from, to] :
       {std::pair(dtypes.stored, dtypes.compute), std::pair(dtypes.compute, dtypes.reduce),
        std::pair(dtypes.reduce, dtypes.gradient)}) {
    if (from == to || from == DType::kInvalid || to == DType::kInvalid) continue;
    device::ElementCopy copy;
    copy.source_dtype = from;
    copy.target_dtype = to;
    Status possible = device::check_element_copy(copy);
    if (!possible.ok())
      return std::move(possible).annotated(
          fmt::format("unit '{}' on device '{}'", unit, device.name()));
  }
  return {};
}

}  // namespace

UnitGroup::UnitGroup(const Owner& owner, UnitLayout layout, const DTypePolicy& dtypes)
    : owner_(owner),
      home_(owner.runtime->shard_home(owner.offloads)),
      layout_(std::move(layout)),
      dtypes_(dtypes),
      stored_(layout_, dtypes.stored, home_.work),
      compute_(layout_, dtypes.compute, &owner.runtime->work()) {}

Result<std::unique_ptr<UnitGroup>> UnitGroup::create(const Owner& owner, const DTypePolicy& dtypes,
                                                     LayoutMode mode,
                                                     std::vector<ParameterSpec> specs,
                                                     std::vector<size_t> numbers) {
  SHW_RETURN_IF_ERROR(check_conversions(owner.runtime->device(), *owner.unit_name, dtypes));
  const int32_t axis = owner.runtime->options().shard_axis;
  const int32_t world = owner.runtime->mesh().axis_size(axis);
  SHW_ASSIGN_OR_RETURN(UnitLayout layout, UnitLayout::create(std::move(specs), world, mode));
  auto group = std::unique_ptr<UnitGroup>(new UnitGroup(owner, std::move(layout), dtypes));
  group->numbers_ = std::move(numbers);
  group->replicated_ = group->size() > 0 && group->layout_.slot(0).is_replicated;
  group->whole_ = group->replicated_ || world == 1;
  group->shard_rank_ = owner.runtime->mesh().coordinate(axis);
  group->full_.resize(group->size());
  const Channel* channel = owner.runtime->reduce_channel();
  if (group->replicated_ && channel != nullptr &&
      !channel->sums_in_order(owner.runtime->options().unordered))
    return failed_precondition(fmt::format(
        "unit '{}' has replicated parameters, and communicator '{}' sums in an order of its own; "
        "choose `unordered` where results may depend on it",
        *owner.unit_name, channel->communicator_name()));
  return group;
}

UnitGroup::~UnitGroup() {
  release_full(false);
}

uint64_t UnitGroup::stored_bytes(int64_t elements) const {
  return bytes_of(dtypes_.stored, elements);
}

uint64_t UnitGroup::compute_bytes(int64_t elements) const {
  return bytes_of(dtypes_.compute, elements);
}

int64_t UnitGroup::shard_elements() const {
  return replicated_ ? layout_.replicated_elements() : layout_.shard_elements();
}

uint64_t UnitGroup::gathered_bytes() const {
  return whole_ ? 0 : compute_bytes(layout_.gathered_elements());
}

Status UnitGroup::allocate_shard() {
  SHW_ASSIGN_OR_RETURN(Buffer shard, home_.memory->acquire(BufferKind::kShard, owner_.unit,
                                                           stored_bytes(shard_elements())));
  SHW_RETURN_IF_ERROR(home_.work->zero(shard.bytes()));
  shard_ = std::make_shared<Buffer>(std::move(shard));
  return {};
}

Status UnitGroup::fill(size_t parameter, std::span<const std::byte> whole, bool on_device) {
  const bool is_here = home_.work->is_host() != on_device;
  if (is_here) return stored_.cut(parameter, shard_rank_, whole, shard());
  device::MemoryWork& work = owner_.runtime->work();
  SHW_ASSIGN_OR_RETURN(const Buffer copy,
                       home_.memory->acquire(BufferKind::kParameters, owner_.unit, whole.size()));
  SHW_RETURN_IF_ERROR(on_device ? work.download(whole, copy.bytes())
                                : work.upload(whole, copy.bytes()));
  if (on_device) SHW_RETURN_IF_ERROR(work.finish());
  return stored_.cut(parameter, shard_rank_, copy.bytes(), shard());
}

std::span<std::byte> UnitGroup::local(size_t parameter) const {
  return stored_.local(parameter, shard_rank_, shard());
}

uint64_t UnitGroup::full_offset(size_t parameter) const {
  const ParameterSlot& slot = layout_.slot(parameter);
  if (replicated_) return compute_bytes(slot.offset_in_shard);
  if (layout_.mode() == LayoutMode::kRagged) return compute_bytes(slot.offset_in_unit);
  return compute_bytes(slot.offset_in_shard * layout_.world());
}

Status UnitGroup::start_gather(Channel* channel) {
  if (whole_ || layout_.shard_elements() == 0) return {};
  GatherSource source;
  source.call.unit = owner_.unit;
  source.call.unit_name = owner_.unit_name;
  source.call.dtype = dtypes_.compute;
  source.stored = dtypes_.stored;
  source.part = shard();
  source.memory = shard_;
  source.is_offloaded = owner_.offloads;
  if (secondary_) {
    source.is_offloaded = false;
    source.stored = dtypes_.compute;
    source.part = secondary_->bytes();
    source.memory = secondary_;
  }
  source.call.count = source.part.size() / bytes_of(source.stored, 1);
  SHW_ASSIGN_OR_RETURN(gather_, Gather::start(*owner_.runtime, *channel, source));
  return {};
}

Result<bool> UnitGroup::wait_gather(int64_t timeout_ns) {
  if (gather_ == nullptr) return true;
  return gather_->wait(timeout_ns);
}

Status UnitGroup::allocate_full() {
  if (owner_.allocator != nullptr) {
    host_memory_ = true;
    for (size_t each = 0; each < size(); ++each) {
      if (!full_[each].empty()) continue;
      SHW_ASSIGN_OR_RETURN(
          full_[each],
          owner_.allocator->allocate(numbers_[each], compute_bytes(layout_.slot(each).elements())));
    }
    return {};
  }
  const int64_t elements =
      replicated_ ? layout_.replicated_elements() : layout_.gathered_elements();
  if (!full_memory_) {
    SHW_ASSIGN_OR_RETURN(full_memory_,
                         owner_.runtime->memory().acquire(BufferKind::kParameters, owner_.unit,
                                                          compute_bytes(elements)));
  }
  for (size_t each = 0; each < size(); ++each)
    full_[each] = full_memory_.bytes().subspan(full_offset(each),
                                               compute_bytes(layout_.slot(each).elements()));
  return {};
}

// Whole already: given out where it lies, unless it is cast or the host has memory of its own.
Status UnitGroup::finish_whole() {
  if (!dtypes_.casts_parameters() && owner_.allocator == nullptr) return give_out();
  device::MemoryWork& work = owner_.runtime->work();
  std::span<std::byte> held = shard();
  Buffer uploaded;
  if (owner_.offloads) {
    SHW_ASSIGN_OR_RETURN(uploaded, owner_.runtime->memory().acquire(BufferKind::kCastStaging,
                                                                    owner_.unit, held.size()));
    SHW_RETURN_IF_ERROR(work.upload(held, uploaded.bytes()));
    held = uploaded.bytes();
  }
  SHW_RETURN_IF_ERROR(allocate_full());
  for (size_t each = 0; each < size(); ++each)
    SHW_RETURN_IF_ERROR(work.cast(dtypes_.stored, stored_.local(each, shard_rank_, held),
                                  dtypes_.compute, full_[each]));
  return {};
}

// Of an offloaded shard there is a copy on the device.
Status UnitGroup::give_out() {
  std::span<std::byte> held = shard();
  if (owner_.offloads) {
    if (!full_memory_) {
      SHW_ASSIGN_OR_RETURN(full_memory_, owner_.runtime->memory().acquire(
                                             BufferKind::kParameters, owner_.unit, held.size()));
    }
    SHW_RETURN_IF_ERROR(owner_.runtime->work().upload(held, full_memory_.bytes()));
    held = full_memory_.bytes();
  }
  for (size_t each = 0; each < size(); ++each) full_[each] = stored_.local(each, shard_rank_, held);
  return {};
}

Status UnitGroup::copy_out(std::span<const std::byte> rows) {
  for (size_t each = 0; each < size(); ++each)
    SHW_RETURN_IF_ERROR(compute_.unpack(each, rows, full_[each]));
  return {};
}

Status UnitGroup::keep_secondary(std::span<const std::byte> rows, int32_t secondary_size) {
  const size_t part = rows.size() / static_cast<size_t>(secondary_size);
  if (secondary_ == nullptr) {
    SHW_ASSIGN_OR_RETURN(Buffer secondary, owner_.runtime->memory().acquire(BufferKind::kSecondary,
                                                                            owner_.unit, part));
    secondary_ = std::make_shared<Buffer>(std::move(secondary));
  }
  const size_t index = static_cast<size_t>(shard_rank_ % secondary_size);
  return owner_.runtime->work().copy(rows.subspan(index * part, part), secondary_->bytes());
}

Status UnitGroup::finish_gather(int32_t secondary_size) {
  if (has_full_) return {};  // another group had no memory; this one is done
  SHW_RETURN_IF_ERROR(whole_ ? finish_whole() : finish_gathered(secondary_size));
  has_full_ = true;
  return {};
}

Status UnitGroup::finish_gathered(int32_t secondary_size) {
  const bool rows_are_parameters =
      layout_.mode() == LayoutMode::kRagged && owner_.allocator == nullptr;
  const std::span<const std::byte> rows =
      gather_ == nullptr ? std::span<const std::byte>() : gather_->rows();
  if (secondary_size > 0) SHW_RETURN_IF_ERROR(keep_secondary(rows, secondary_size));
  if (rows_are_parameters && gather_ != nullptr) {
    full_memory_ = gather_->take_rows();
    SHW_RETURN_IF_ERROR(full_memory_.retag(BufferKind::kParameters));
  }
  SHW_RETURN_IF_ERROR(allocate_full());
  if (!rows_are_parameters) SHW_RETURN_IF_ERROR(copy_out(rows));
  gather_.reset();
  return {};
}

void UnitGroup::release_full(bool keep_memory) {
  has_full_ = false;
  if (keep_memory) return;
  for (size_t each = 0; each < full_.size(); ++each) {  // none yet where it was never made
    if (host_memory_ && !full_[each].empty())
      owner_.allocator->release(numbers_[each], full_[each]);
    full_[each] = {};
  }
  host_memory_ = false;
  full_memory_ = Buffer();
}

}  // namespace shardwright::hsdp::internal
