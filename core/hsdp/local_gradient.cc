// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/local_gradient_internal.h"

namespace shardwright::hsdp::internal {
namespace {

uint64_t element_bytes(DType dtype) {
  return static_cast<uint64_t>(dtype_bits(dtype)) / 8;
}

}  // namespace

void LocalGradient::take(const GradientBytes& gradient, std::shared_ptr<const void> owner) {
  bytes_ = gradient;
  owner_ = std::move(owner);
}

Status LocalGradient::add(UnitMemory& memory, device::MemoryWork& work, UnitId unit,
                          DType accumulation, const GradientBytes& gradient) {
  if (!is_sum_) {
    const uint64_t count = gradient.bytes.size() / element_bytes(gradient.dtype);
    SHW_ASSIGN_OR_RETURN(Buffer sum, memory.acquire(BufferKind::kLocalGradient, unit,
                                                    count * element_bytes(accumulation)));
    const GradientBytes& first = is_empty() ? gradient : bytes_;
    SHW_RETURN_IF_ERROR(work.cast(first.dtype, first.bytes, accumulation, sum.bytes()));
    if (!is_empty())
      SHW_RETURN_IF_ERROR(work.add_cast(gradient.dtype, gradient.bytes, accumulation, sum.bytes()));
    sum_ = std::move(sum);
    bytes_ = {accumulation, sum_.bytes()};
    if (owner_ != nullptr) SHW_RETURN_IF_ERROR(work.finish());
    owner_.reset();
    is_sum_ = true;
    return {};
  }
  return work.add_cast(gradient.dtype, gradient.bytes, accumulation, sum_.bytes());
}

void LocalGradient::clear() {
  bytes_ = {};
  owner_.reset();
  sum_ = Buffer();
  is_sum_ = false;
}

}  // namespace shardwright::hsdp::internal
