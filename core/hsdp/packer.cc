// SPDX-License-Identifier: Apache-2.0
//
// A full tensor is seen as three dimensions of which the middle one is sharded. Along the first
// dimension of a tensor a rank's part is one run of it; along any other it is a run per index of
// the dimensions before, so that those are walked in steps whose bytes stay in a core's cache while
// all ranks get their runs.
#include "core/hsdp/packer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"

namespace shardwright::hsdp {
namespace {

constexpr size_t kStepBytes = size_t{32} * 1024;

// A window that is only read.
std::byte* read_only(const std::byte* data) {
  return const_cast<std::byte*>(data);
}

// Where the runs of a parameter lie, in a full tensor and in shards. An `outer` index is one of the
// dimensions before the sharded one.
class ParameterRuns {
 public:
  ParameterRuns(const UnitLayout& layout, size_t parameter, uint64_t element_bytes)
      : layout_(layout), parameter_(parameter), element_bytes_(element_bytes) {
    const Dims& shape = layout.specs()[parameter].shape;
    const auto dim = static_cast<size_t>(layout.slot(parameter).dim);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d < dim) outer_ *= shape[d];
      if (d > dim) inner_ *= shape[d];
    }
    elements_ = layout.slot(parameter).rows * inner_;
  }

  int64_t outer() const { return outer_; }
  // Of an outer index.
  int64_t elements() const { return elements_; }
  int64_t step() const {
    const int64_t fitting = static_cast<int64_t>(kStepBytes / element_bytes_);
    return std::max<int64_t>(fitting / std::max<int64_t>(elements_, 1), 1);
  }
  // Elements that a rank holds of an outer index, and the first of them.
  IndexRange held(int32_t rank) const {
    const IndexRange rows = layout_.rows(parameter_, rank);
    return {rows.begin * inner_, rows.size * inner_};
  }
  // What a rank holds of outer indices [begin, begin + count), in its shard.
  StridedWindow in_shard(std::byte* shard, int32_t rank, int64_t begin, int64_t count) const {
    const int64_t run = held(rank).size;
    return window(shard, layout_.local_offset(parameter_, rank) + begin * run, {count, run}, run);
  }
  // The same in a tensor that begins with outer index `begin`.
  StridedWindow in_tensor(std::byte* tensor, int32_t rank, int64_t count) const {
    const IndexRange run = held(rank);
    return window(tensor, run.begin, {count, run.size}, elements_);
  }

 private:
  StridedWindow window(std::byte* data, int64_t offset, Dims shape, int64_t stride) const {
    // An empty tensor may have no memory, and places in it all the same.
    std::byte* first =
        data == nullptr ? nullptr : data + static_cast<size_t>(offset) * element_bytes_;
    return {first, element_bytes_, std::move(shape), {stride, 1}};
  }

  const UnitLayout& layout_;
  size_t parameter_;
  uint64_t element_bytes_;
  int64_t outer_ = 1;
  int64_t inner_ = 1;
  int64_t elements_ = 0;
};

// One gradient on its way into the shards of all ranks (kRow).
class RowPacking {
 public:
  RowPacking(const UnitLayout& layout, size_t parameter, DType dtype, std::span<std::byte> gathered)
      : runs_(layout, parameter, static_cast<uint64_t>(dtype_bits(dtype)) / 8),
        dtype_(dtype),
        world_(layout.world()),
        gathered_(gathered) {}

  Status run(const FullGradient& gradient) {
    const auto outer_bytes =
        static_cast<size_t>(runs_.elements()) * static_cast<size_t>(dtype_bits(gradient.dtype)) / 8;
    for (int64_t begin = 0; begin < runs_.outer(); begin += runs_.step()) {
      const int64_t count = std::min(runs_.step(), runs_.outer() - begin);
      const auto bytes = gradient.bytes.subspan(static_cast<size_t>(begin) * outer_bytes,
                                                static_cast<size_t>(count) * outer_bytes);
      SHW_RETURN_IF_ERROR(step(begin, count, {gradient.dtype, bytes}));
    }
    return {};
  }

 private:
  size_t element_bytes() const { return static_cast<size_t>(dtype_bits(dtype_)) / 8; }
  std::byte* shard(int32_t rank) const {
    return gathered_.data() +
           gathered_.size() / static_cast<size_t>(world_) * static_cast<size_t>(rank);
  }

  Status step(int64_t begin, int64_t count, const FullGradient& gradient) {
    if (gradient.dtype == dtype_) {
      deal(begin, count, read_only(gradient.bytes.data()));
      return {};
    }
    const size_t bytes = static_cast<size_t>(count * runs_.elements()) * element_bytes();
    if (bytes > kStepBytes) return cast_runs(begin, gradient);
    alignas(64) std::array<std::byte, kStepBytes> cast;
    SHW_RETURN_IF_ERROR(
        cast_elements(gradient.dtype, gradient.bytes, dtype_, std::span(cast).first(bytes)));
    deal(begin, count, cast.data());
    return {};
  }

  void deal(int64_t begin, int64_t count, std::byte* tensor) {
    for (int32_t rank = 0; rank < world_; ++rank)
      copy_window(runs_.in_tensor(tensor, rank, count),
                  runs_.in_shard(shard(rank), rank, begin, count));
  }

  // Of one outer index: more than a step, so its runs are long unless there are very many ranks.
  Status cast_runs(int64_t begin, const FullGradient& gradient) {
    const size_t from_bytes = static_cast<size_t>(dtype_bits(gradient.dtype)) / 8;
    for (int32_t rank = 0; rank < world_; ++rank) {
      const IndexRange held = runs_.held(rank);
      if (held.size == 0) continue;
      const auto from = gradient.bytes.subspan(static_cast<size_t>(held.begin) * from_bytes,
                                               static_cast<size_t>(held.size) * from_bytes);
      const std::span<std::byte> to(runs_.in_shard(shard(rank), rank, begin, 1).data,
                                    static_cast<size_t>(held.size) * element_bytes());
      SHW_RETURN_IF_ERROR(cast_elements(gradient.dtype, from, dtype_, to));
    }
    return {};
  }

  ParameterRuns runs_;
  DType dtype_;
  int32_t world_;
  std::span<std::byte> gathered_;
};

}  // namespace

Packer::Packer(const UnitLayout& layout, DType dtype, device::MemoryWork* work)
    : layout_(layout),
      dtype_(dtype),
      element_bytes_(static_cast<uint64_t>(dtype_bits(dtype)) / 8),
      work_(work) {}

Status Packer::zero(std::span<std::byte> memory) const {
  if (!is_on_host()) return work_->zero(memory);
  zero_bytes(memory);
  return {};
}

Status Packer::copy(std::span<const std::byte> from, std::span<std::byte> to) const {
  if (!is_on_host()) return work_->copy(from, to);
  copy_bytes(from, to);
  return {};
}

Status Packer::cast(DType from, std::span<const std::byte> source,
                    std::span<std::byte> target) const {
  return is_on_host() ? cast_elements(from, source, dtype_, target)
                      : work_->cast(from, source, dtype_, target);
}

Status Packer::copy_runs(const StridedWindow& from, DType from_dtype, const StridedWindow& to,
                         DType to_dtype) const {
  if (is_on_host()) {
    copy_window(from, to);
    return {};
  }
  device::ElementCopy runs;
  runs.source = from.data;
  runs.target = to.data;
  runs.rows = static_cast<uint64_t>(to.shape[0]);
  runs.columns = static_cast<uint64_t>(to.shape[1]);
  runs.source_pitch = static_cast<uint64_t>(from.strides[0]);
  runs.target_pitch = static_cast<uint64_t>(to.strides[0]);
  runs.source_dtype = from_dtype;
  runs.target_dtype = to_dtype;
  return work_->copy_runs(runs);
}

uint64_t Packer::shard_bytes() const {
  return bytes_of(layout_.shard_elements());
}

uint64_t Packer::gathered_bytes() const {
  return bytes_of(layout_.gathered_elements());
}

uint64_t Packer::replicated_bytes() const {
  return bytes_of(layout_.replicated_elements());
}

uint64_t Packer::full_bytes(size_t parameter) const {
  return bytes_of(layout_.slot(parameter).elements());
}

bool Packer::is_one_run(size_t parameter) const {
  return layout_.slot(parameter).is_replicated || layout_.mode() == LayoutMode::kRagged;
}

std::span<std::byte> Packer::shard_of(int32_t rank, std::span<std::byte> gathered) const {
  return gathered.subspan(shard_bytes() * static_cast<size_t>(rank), shard_bytes());
}

Status Packer::check(size_t parameter, int32_t ranks, size_t memory_bytes) const {
  const ParameterSlot& slot = layout_.slot(parameter);
  const std::string& fqn = layout_.specs()[parameter].fqn;
  if (slot.is_left_out)
    return invalid_argument(fmt::format("parameter {} is left out of the layout", fqn));
  const size_t expected =
      slot.is_replicated ? replicated_bytes() : shard_bytes() * static_cast<size_t>(ranks);
  if (memory_bytes == expected) return {};
  return invalid_argument(fmt::format("the memory of the unit of parameter {} has {} bytes, not {}",
                                      fqn, memory_bytes, expected));
}

Status Packer::check_full(size_t parameter, size_t full_bytes, uint64_t element_bytes) const {
  const size_t expected =
      static_cast<size_t>(layout_.slot(parameter).elements()) * static_cast<size_t>(element_bytes);
  if (full_bytes == expected) return {};
  return invalid_argument(fmt::format("the tensor of parameter {} has {} bytes, not {}",
                                      layout_.specs()[parameter].fqn, full_bytes, expected));
}

std::span<std::byte> Packer::local(size_t parameter, int32_t rank,
                                   std::span<std::byte> shard) const {
  const int64_t elements =
      layout_.rows(parameter, rank).size * layout_.slot(parameter).row_elements;
  return shard.subspan(bytes_of(layout_.local_offset(parameter, rank)), bytes_of(elements));
}

std::span<const std::byte> Packer::local(size_t parameter, int32_t rank,
                                         std::span<const std::byte> shard) const {
  return local(parameter, rank, std::span(read_only(shard.data()), shard.size()));
}

std::span<std::byte> Packer::full(size_t parameter, std::span<std::byte> gathered) const {
  const ParameterSlot& slot = layout_.slot(parameter);
  if (slot.is_left_out || !is_one_run(parameter)) return {};
  const int64_t offset = slot.is_replicated ? slot.offset_in_shard : slot.offset_in_unit;
  return gathered.subspan(bytes_of(offset), full_bytes(parameter));
}

Status Packer::zero_own_padding(size_t parameter, int32_t rank, std::span<std::byte> shard) const {
  const ParameterSlot& slot = layout_.slot(parameter);
  const int64_t held = layout_.rows(parameter, rank).size;
  if (is_one_run(parameter) || held == slot.shard_rows) return {};
  return zero(shard.subspan(bytes_of(slot.offset_in_shard + held * slot.row_elements),
                            bytes_of((slot.shard_rows - held) * slot.row_elements)));
}

Status Packer::cut(size_t parameter, int32_t rank, std::span<const std::byte> full,
                   std::span<std::byte> shard) const {
  SHW_RETURN_IF_ERROR(check(parameter, 1, shard.size()));
  SHW_RETURN_IF_ERROR(check_full(parameter, full.size(), element_bytes_));
  if (layout_.slot(parameter).is_replicated) return copy(full, this->full(parameter, shard));
  const ParameterRuns runs(layout_, parameter, element_bytes_);
  SHW_RETURN_IF_ERROR(copy_runs(runs.in_tensor(read_only(full.data()), rank, runs.outer()), dtype_,
                                runs.in_shard(shard.data(), rank, 0, runs.outer()), dtype_));
  return zero_own_padding(parameter, rank, shard);
}

Status Packer::unpack(size_t parameter, std::span<const std::byte> gathered,
                      std::span<std::byte> full) const {
  SHW_RETURN_IF_ERROR(check(parameter, layout_.world(), gathered.size()));
  SHW_RETURN_IF_ERROR(check_full(parameter, full.size(), element_bytes_));
  const std::span<std::byte> source(read_only(gathered.data()), gathered.size());
  if (is_one_run(parameter)) return copy(this->full(parameter, source), full);
  const ParameterRuns runs(layout_, parameter, element_bytes_);
  const int64_t step = is_on_host() ? runs.step() : std::max<int64_t>(runs.outer(), 1);
  for (int64_t begin = 0; begin < runs.outer(); begin += step) {
    const int64_t count = std::min(step, runs.outer() - begin);
    std::byte* const target = full.data() + bytes_of(begin * runs.elements());
    for (int32_t rank = 0; rank < layout_.world(); ++rank) {
      SHW_RETURN_IF_ERROR(
          copy_runs(runs.in_shard(shard_of(rank, source).data(), rank, begin, count), dtype_,
                    runs.in_tensor(target, rank, count), dtype_));
    }
  }
  return {};
}

Status Packer::pack(size_t parameter, const FullGradient& gradient,
                    std::span<std::byte> gathered) const {
  SHW_RETURN_IF_ERROR(check(parameter, layout_.world(), gathered.size()));
  if (!cast_is_supported(gradient.dtype, dtype_)) {
    return unimplemented(fmt::format(
        "the gradient of parameter {} is of {}, which is not cast to {}",
        layout_.specs()[parameter].fqn, dtype_name(gradient.dtype), dtype_name(dtype_)));
  }
  const auto from_bytes = static_cast<uint64_t>(dtype_bits(gradient.dtype)) / 8;
  SHW_RETURN_IF_ERROR(check_full(parameter, gradient.bytes.size(), from_bytes));
  if (is_one_run(parameter)) return cast(gradient.dtype, gradient.bytes, full(parameter, gathered));
  for (int32_t rank = 0; rank < layout_.world(); ++rank)
    SHW_RETURN_IF_ERROR(zero_own_padding(parameter, rank, shard_of(rank, gathered)));
  return is_on_host() ? RowPacking(layout_, parameter, dtype_, gathered).run(gradient)
                      : pack_runs(parameter, gradient, gathered);
}

// By a device, which casts on the way.
Status Packer::pack_runs(size_t parameter, const FullGradient& gradient,
                         std::span<std::byte> gathered) const {
  const ParameterRuns source(layout_, parameter,
                             static_cast<uint64_t>(dtype_bits(gradient.dtype)) / 8);
  const ParameterRuns target(layout_, parameter, element_bytes_);
  for (int32_t rank = 0; rank < layout_.world(); ++rank) {
    SHW_RETURN_IF_ERROR(copy_runs(
        source.in_tensor(read_only(gradient.bytes.data()), rank, source.outer()), gradient.dtype,
        target.in_shard(shard_of(rank, gathered).data(), rank, 0, target.outer()), dtype_));
  }
  return {};
}

Status Packer::pack_nothing(size_t parameter, std::span<std::byte> gathered) const {
  SHW_RETURN_IF_ERROR(check(parameter, layout_.world(), gathered.size()));
  if (is_one_run(parameter)) return zero(full(parameter, gathered));
  for (int32_t rank = 0; rank < layout_.world(); ++rank) {
    const std::span<std::byte> shard = shard_of(rank, gathered);
    SHW_RETURN_IF_ERROR(zero(local(parameter, rank, shard)));
    SHW_RETURN_IF_ERROR(zero_own_padding(parameter, rank, shard));
  }
  return {};
}

Status Packer::zero_padding(int32_t rank, std::span<std::byte> shard) const {
  if (shard.size() != shard_bytes()) {
    return invalid_argument(
        fmt::format("the shard of the unit has {} bytes, not {}", shard.size(), shard_bytes()));
  }
  size_t end = 0;  // of what the parameters so far hold
  for (size_t parameter = 0; parameter < layout_.size(); ++parameter) {
    if (layout_.slot(parameter).is_replicated) continue;
    const std::span<std::byte> held = local(parameter, rank, shard);
    if (held.empty()) continue;
    const auto begin = static_cast<size_t>(held.data() - shard.data());
    SHW_RETURN_IF_ERROR(zero(shard.subspan(end, begin - end)));
    end = begin + held.size();
  }
  return zero(shard.subspan(end));
}

Status Packer::zero_padding(std::span<std::byte> gathered) const {
  if (gathered.size() != gathered_bytes()) {
    return invalid_argument(fmt::format("the shards of the unit have {} bytes, not {}",
                                        gathered.size(), gathered_bytes()));
  }
  for (int32_t rank = 0; rank < layout_.world(); ++rank)
    SHW_RETURN_IF_ERROR(zero_padding(rank, shard_of(rank, gathered)));
  return {};
}

}  // namespace shardwright::hsdp
