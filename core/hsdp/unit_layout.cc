// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/unit_layout.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/hsdp/ragged_split_internal.h"
#include "core/integrity/digest.h"

namespace shardwright::hsdp {
namespace {

Status too_large() {
  return invalid_argument("the parameters of the unit have more elements than fit 63 bits");
}

// The one who names what is wrong with a parameter.
Status wrong_parameter(const ParameterSpec& spec, std::string_view what) {
  return invalid_argument(fmt::format("parameter {} {}", spec.fqn, what))
      .with_detail("parameter", spec.fqn);
}

Status check_names(std::span<const ParameterSpec> specs) {
  std::unordered_set<std::string_view> names;
  for (const ParameterSpec& spec : specs) {
    if (!names.insert(spec.fqn).second) return wrong_parameter(spec, "comes twice in one unit");
    for (const std::string& alias : spec.aliases) {
      if (names.insert(alias).second) continue;
      return wrong_parameter(spec, fmt::format("has the other name {}, which comes twice in one "
                                               "unit",
                                               alias));
    }
  }
  return {};
}

Status check_dtypes(std::span<const ParameterSpec> specs) {
  for (const ParameterSpec& spec : specs) {
    if (!dtype_is_valid(spec.dtype)) return wrong_parameter(spec, "has no dtype of the table");
    if (dtype_is_subbyte(spec.dtype)) {
      return wrong_parameter(spec, fmt::format("is of {}, whose elements are less than a byte: it "
                                               "cannot be sharded",
                                               dtype_name(spec.dtype)));
    }
    if (spec.dtype == specs.front().dtype) continue;
    return wrong_parameter(spec, fmt::format("is of {}, {} of the same group of {}: a group has "
                                             "one dtype",
                                             dtype_name(spec.dtype), specs.front().fqn,
                                             dtype_name(specs.front().dtype)));
  }
  return {};
}

// Makes shard_dim count from 0 and bounds the shape.
Status check_shape(LayoutMode mode, int32_t world, ParameterSpec* spec) {
  const Dims& shape = spec->shape;
  if (shape.size() > static_cast<size_t>(kMaxTensorRank)) {
    return wrong_parameter(
        *spec, fmt::format("has {} dimensions, the limit is {}", shape.size(), kMaxTensorRank));
  }
  if (const Status status = checked_element_count(shape).status(); !status.ok())
    return wrong_parameter(*spec, fmt::format("has a wrong shape: {}", status.message()));
  if (spec->replicate) {
    spec->shard_dim = 0;
    return {};
  }
  if (shape.empty()) {
    return wrong_parameter(
        *spec, "has no dimension and cannot be sharded: make it a tensor of one element");
  }
  const auto rank = static_cast<int32_t>(shape.size());
  if (spec->shard_dim < -rank || spec->shard_dim >= rank) {
    return wrong_parameter(*spec, fmt::format("is to be sharded along dimension {}, but has {}",
                                              spec->shard_dim, rank));
  }
  if (spec->shard_dim < 0) spec->shard_dim += rank;
  if (spec->shard_dim == 0) return {};
  const int64_t extent = shape[static_cast<size_t>(spec->shard_dim)];
  if (mode == LayoutMode::kRagged) {
    return wrong_parameter(*spec, fmt::format("is to be sharded along dimension {}; a ragged unit "
                                              "shards the first one only",
                                              spec->shard_dim));
  }
  if (extent % world == 0) return {};
  return wrong_parameter(*spec, fmt::format("cannot be sharded along dimension {}: its size {} is "
                                            "not a multiple of the world size {}; only the first "
                                            "dimension may be uneven",
                                            spec->shard_dim, extent, world));
}

ParameterSlot make_slot(const ParameterSpec& spec) {
  ParameterSlot slot;
  slot.dim = spec.shard_dim;
  slot.is_replicated = spec.replicate;
  if (spec.replicate) {
    slot.rows = element_count_of(spec.shape);
    slot.row_elements = 1;
    return slot;
  }
  const auto dim = static_cast<size_t>(spec.shard_dim);
  slot.rows = spec.shape[dim];
  slot.row_elements = 1;
  for (size_t d = 0; d < spec.shape.size(); ++d) {
    if (d != dim) slot.row_elements *= spec.shape[d];
  }
  return slot;
}

// The bytes that the digest is made of: numbers of 8 bytes, texts behind their length.
class DigestBytes {
 public:
  void add_number(int64_t value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
  }
  void add_text(std::string_view text) {
    add_number(static_cast<int64_t>(text.size()));
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), bytes, bytes + text.size());
  }
  void add_spec(const ParameterSpec& spec) {
    add_text(spec.fqn);
    add_number(static_cast<int64_t>(spec.dtype));
    add_number(static_cast<int64_t>(spec.shape.size()));
    for (const int64_t extent : spec.shape) add_number(extent);
    add_number(spec.shard_dim);
    add_number(spec.frozen ? 1 : 0);
    add_number(spec.replicate ? 1 : 0);
    add_number(static_cast<int64_t>(spec.aliases.size()));
    for (const std::string& alias : spec.aliases) add_text(alias);
  }
  Digest128 digest() const { return integrity::xxh3_128(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

bool has_rows(const ParameterSlot& slot) {
  return !slot.is_replicated && !slot.is_left_out;
}

}  // namespace

Result<UnitLayout> UnitLayout::create(std::vector<ParameterSpec> specs, int32_t world,
                                      LayoutMode mode) {
  if (world < 1 || world > kMaxWorldSize) {
    return invalid_argument(
        fmt::format("a unit is sharded over {} ranks, not 1 to {}", world, kMaxWorldSize));
  }
  if (mode != LayoutMode::kRow && mode != LayoutMode::kRagged) {
    return invalid_argument(
        fmt::format("{} is no layout mode of a unit", static_cast<int32_t>(mode)));
  }
  SHW_RETURN_IF_ERROR(check_names(specs));
  SHW_RETURN_IF_ERROR(check_dtypes(specs));
  UnitLayout layout;
  layout.world_ = world;
  layout.mode_ = mode;
  for (ParameterSpec& spec : specs) {
    SHW_RETURN_IF_ERROR(check_shape(mode, world, &spec));
    layout.slots_.push_back(make_slot(spec));
    layout.dtype_ = spec.dtype;
  }
  layout.specs_ = std::move(specs);
  SHW_RETURN_IF_ERROR(layout.place_replicated());
  SHW_RETURN_IF_ERROR(mode == LayoutMode::kRow ? layout.place_rows() : layout.place_ragged());
  SHW_RETURN_IF_ERROR(layout.count_padding());
  layout.make_digest();
  return layout;
}

Status UnitLayout::place_replicated() {
  replicated_elements_ = 0;
  for (ParameterSlot& slot : slots_) {
    if (!slot.is_replicated || slot.is_left_out) continue;
    slot.offset_in_shard = replicated_elements_;
    if (!checked_add(replicated_elements_, slot.elements(), &replicated_elements_))
      return too_large();
  }
  return {};
}

Status UnitLayout::place_rows() {
  shard_elements_ = 0;
  for (ParameterSlot& slot : slots_) {
    if (slot.is_replicated) continue;
    slot.shard_rows = slot.is_left_out ? 0 : chunk_parts(slot.rows, world_).step;
    slot.offset_in_shard = shard_elements_;
    // Less than twice the elements of the tensor on world_ ranks, but for tensors of few rows.
    int64_t elements = 0;
    if (!checked_multiply(slot.shard_rows, slot.row_elements, &elements) ||
        !checked_add(shard_elements_, elements, &shard_elements_)) {
      return too_large();
    }
  }
  return {};
}

Status UnitLayout::place_ragged() {
  std::vector<internal::RaggedTensor> tensors;
  for (const ParameterSlot& slot : slots_) {
    if (has_rows(slot) && slot.elements() > 0)
      tensors.push_back({slot.row_elements, slot.elements()});
  }
  const auto split = internal::split_ragged(tensors, world_);
  if (!split) return too_large();
  shard_elements_ = split->part_elements;
  size_t next = 0;
  int64_t end = 0;
  for (ParameterSlot& slot : slots_) {
    if (slot.is_replicated) continue;
    slot.offset_in_unit = slot.elements() > 0 ? split->offsets[next++] : end;
    end = slot.offset_in_unit + slot.elements();
  }
  return {};
}

Status UnitLayout::count_padding() {
  if (!checked_multiply(shard_elements_, int64_t{world_}, &padding_elements_)) return too_large();
  for (const ParameterSlot& slot : slots_) {
    if (has_rows(slot)) padding_elements_ -= slot.elements();
  }
  return {};
}

void UnitLayout::make_digest() {
  DigestBytes bytes;
  bytes.add_number(world_);
  bytes.add_number(static_cast<int64_t>(mode_));
  for (size_t parameter = 0; parameter < slots_.size(); ++parameter) {
    bytes.add_spec(specs_[parameter]);
    bytes.add_number(slots_[parameter].is_left_out ? 1 : 0);
  }
  digest_ = bytes.digest();
}

UnitLayout UnitLayout::keeping(const std::vector<bool>& kept) const {
  UnitLayout layout = *this;
  for (size_t parameter = 0; parameter < slots_.size(); ++parameter) {
    if (parameter >= kept.size() || !kept[parameter]) layout.slots_[parameter].is_left_out = true;
  }
  // Nothing grows, so what fitted fits.
  static_cast<void>(layout.place_replicated());
  if (mode_ == LayoutMode::kRow) static_cast<void>(layout.place_rows());
  static_cast<void>(layout.count_padding());
  layout.make_digest();
  return layout;
}

IndexRange UnitLayout::rows(size_t parameter, int32_t rank) const {
  const ParameterSlot& slot = slots_[parameter];
  if (slot.is_left_out) return {slot.rows, 0};
  if (slot.is_replicated) return {0, slot.rows};
  IndexRange range;
  if (mode_ == LayoutMode::kRow) {
    range = chunk_of({0, slot.rows}, world_, rank);
  } else if (slot.elements() > 0) {
    // Borders inside the parameter lie between rows, so the divisions are exact.
    const int64_t begin = shard_elements_ * rank - slot.offset_in_unit;
    const int64_t first = std::clamp<int64_t>(begin, 0, slot.elements());
    const int64_t last = std::clamp<int64_t>(begin + shard_elements_, 0, slot.elements());
    range = {first / slot.row_elements, (last - first) / slot.row_elements};
  }
  return range.size == 0 ? IndexRange{slot.rows, 0} : range;
}

Box UnitLayout::box(size_t parameter, int32_t rank) const {
  Box box = whole_box(specs_[parameter].shape);
  const ParameterSlot& slot = slots_[parameter];
  if (slot.is_replicated) {
    if (slot.is_left_out) box.sizes = Dims(box.sizes.size(), 0);
    return box;
  }
  const IndexRange held = rows(parameter, rank);
  box.offsets[static_cast<size_t>(slot.dim)] = held.begin;
  box.sizes[static_cast<size_t>(slot.dim)] = held.size;
  return box;
}

Dims UnitLayout::local_shape(size_t parameter, int32_t rank) const {
  return box(parameter, rank).sizes;
}

int64_t UnitLayout::local_offset(size_t parameter, int32_t rank) const {
  const ParameterSlot& slot = slots_[parameter];
  if (slot.is_replicated || mode_ == LayoutMode::kRow) return slot.offset_in_shard;
  return std::clamp<int64_t>(slot.offset_in_unit - shard_elements_ * rank, 0, shard_elements_);
}

}  // namespace shardwright::hsdp
