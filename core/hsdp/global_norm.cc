// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "core/hsdp/global_norm_internal.h"
#include "core/hsdp/group_gradients_internal.h"
#include "core/hsdp/runtime_internal.h"
#include "core/tensor/cast.h"

namespace shardwright::hsdp::internal {
namespace {

constexpr size_t kNormElements = 1024;              // cast at a time
constexpr size_t kDownloadBytes = size_t{8} << 20;  // of a device, summed by the host at a time

}  // namespace

Status GlobalNorm::check() const {
  if (p_ > 0) return {};
  return invalid_argument(fmt::format("the order of a norm is {}; it must be positive", p_));
}

void GlobalNorm::join(double term, double* total) const {
  // NaN stays: std::max would drop it.
  if (std::isinf(p_)) {
    if (term > *total || std::isnan(term)) *total = term;
  } else {
    *total += term;
  }
}

Status GlobalNorm::add_elements(DType dtype, std::span<const std::byte> elements,
                                double* total) const {
  const size_t width = static_cast<size_t>(dtype_bits(dtype)) / 8;
  std::array<double, kNormElements> values;
  for (size_t begin = 0; begin < elements.size(); begin += kNormElements * width) {
    const std::span<const std::byte> piece =
        elements.subspan(begin, std::min(kNormElements * width, elements.size() - begin));
    const std::span<double> numbers(values.data(), piece.size() / width);
    SHW_RETURN_IF_ERROR(
        cast_elements(dtype, piece, DType::kFloat64, std::as_writable_bytes(numbers)));
    for (const double each : numbers) {
      const double size = std::abs(each);
      join(p_ == 2.0 ? size * size : std::isinf(p_) ? size : std::pow(size, p_), total);
    }
  }
  return {};
}

Status GlobalNorm::add(GroupGradients& gradients) {
  const DType dtype = gradients.group().dtypes().gradient;
  double* const total = gradients.group().is_replicated() ? &whole_ : &sharded_;
  const std::span<const std::byte> all = gradients.shard_gradients();
  Runtime& runtime = *gradients.group().owner().runtime;
  if (gradients.group().home().work->is_host() || all.empty())
    return add_elements(dtype, all, total);
  SHW_ASSIGN_OR_RETURN(const Buffer here, runtime.pinned().acquire(
                                              BufferKind::kLanding, gradients.group().owner().unit,
                                              std::min(all.size(), kDownloadBytes)));
  for (size_t begin = 0; begin < all.size(); begin += kDownloadBytes) {
    const auto piece = all.subspan(begin, std::min(kDownloadBytes, all.size() - begin));
    SHW_RETURN_IF_ERROR(runtime.work().download(piece, here.bytes().first(piece.size())));
    SHW_RETURN_IF_ERROR(runtime.work().finish());
    SHW_RETURN_IF_ERROR(add_elements(dtype, here.bytes().first(piece.size()), total));
  }
  return {};
}

Result<double> GlobalNorm::finish(Runtime& runtime) {
  double total = whole_;
  if (Channel* channel = runtime.gather_channel(); channel != nullptr) {
    std::vector<double> all(static_cast<size_t>(channel->size()));
    const Status exchanged = channel->exchange(std::as_bytes(std::span(&sharded_, 1)),
                                               std::as_writable_bytes(std::span(all)));
    if (!exchanged.ok()) return runtime.fail(exchanged);
    for (const double each : all) join(each, &total);
  } else {
    join(sharded_, &total);
  }
  if (std::isinf(p_)) return total;
  return p_ == 2.0 ? std::sqrt(total) : std::pow(total, 1.0 / p_);
}

}  // namespace shardwright::hsdp::internal
