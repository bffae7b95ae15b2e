// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "core/hsdp/local_gradient_internal.h"
#include "core/tensor/cast.h"
#include "core/tensor/ordered_add.h"

namespace shardwright::hsdp::internal {
namespace {

// Elements that are cast before they are added: few enough to stay in the nearest cache.
constexpr size_t kCastElements = 2048;
constexpr size_t kWidestElement = 8;

uint64_t element_bytes(DType dtype) {
  return static_cast<uint64_t>(dtype_bits(dtype)) / 8;
}

}  // namespace

Status add_cast(const GradientBytes& more, DType dtype, std::span<std::byte> target) {
  if (more.dtype == dtype) return add_to(dtype, more.bytes, target);
  alignas(64) std::array<std::byte, kCastElements * kWidestElement> cast;
  const size_t from_bytes = element_bytes(more.dtype);
  const size_t to_bytes = element_bytes(dtype);
  const size_t count = target.size() / to_bytes;
  for (size_t begin = 0; begin < count; begin += kCastElements) {
    const size_t size = std::min(kCastElements, count - begin);
    const std::span<std::byte> piece(cast.data(), size * to_bytes);
    SHW_RETURN_IF_ERROR(cast_elements(
        more.dtype, more.bytes.subspan(begin * from_bytes, size * from_bytes), dtype, piece));
    SHW_RETURN_IF_ERROR(add_to(dtype, piece, target.subspan(begin * to_bytes, size * to_bytes)));
  }
  return {};
}

void LocalGradient::take(const GradientBytes& gradient, std::shared_ptr<const void> owner) {
  bytes_ = gradient;
  owner_ = std::move(owner);
}

Status LocalGradient::add(UnitMemory& memory, UnitId unit, DType accumulation,
                          const GradientBytes& gradient) {
  if (!is_sum_) {
    const uint64_t count = gradient.bytes.size() / element_bytes(gradient.dtype);
    SHW_ASSIGN_OR_RETURN(Buffer sum, memory.acquire(BufferKind::kLocalGradient, unit,
                                                    count * element_bytes(accumulation)));
    const GradientBytes& first = is_empty() ? gradient : bytes_;
    SHW_RETURN_IF_ERROR(cast_elements(first.dtype, first.bytes, accumulation, sum.bytes()));
    if (!is_empty()) SHW_RETURN_IF_ERROR(add_cast(gradient, accumulation, sum.bytes()));
    sum_ = std::move(sum);
    bytes_ = {accumulation, sum_.bytes()};
    owner_.reset();
    is_sum_ = true;
    return {};
  }
  return add_cast(gradient, accumulation, sum_.bytes());
}

void LocalGradient::clear() {
  bytes_ = {};
  owner_.reset();
  sum_ = Buffer();
  is_sum_ = false;
}

}  // namespace shardwright::hsdp::internal
