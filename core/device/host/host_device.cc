// SPDX-License-Identifier: Apache-2.0
//
// Host memory: the copies of core/tensor. Where bytes are digested as well, contiguous ones are
// copied and digested in one pass, strided ones are gathered in steps that stay in a cache.
#include "core/device/host/host_device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/integrity/digest.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"

namespace shardwright::device {
namespace {

constexpr size_t kGatherStepBytes = size_t{128} * 1024;  // stays in the second-level cache
constexpr uint64_t kCastStepElements = 16 * 1024;        // small enough for a core's cache

class HostDevice final : public Device {
 public:
  std::string_view name() const override { return "host"; }

  std::span<std::byte> host_bytes(const DeviceWindow& window) const override {
    if (!window_is_contiguous(window.elements)) return {};
    return {window.elements.data, static_cast<size_t>(window_bytes(window.elements))};
  }

  Status gather(const DeviceWindow& from, uint64_t begin, std::span<std::byte> to) override {
    shardwright::gather(from.elements, begin, to);
    return {};
  }

  Result<Digest128> gather_and_digest(const DeviceWindow& from, uint64_t begin,
                                      std::span<std::byte> to) override {
    const std::span<std::byte> run = host_bytes(from);
    if (!run.empty()) return integrity::copy_and_digest(run.subspan(begin, to.size()), to);
    if (to.size() <= kGatherStepBytes) {
      shardwright::gather(from.elements, begin, to);
      return integrity::xxh3_128(to);
    }
    integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
    for (size_t done = 0; done < to.size(); done += kGatherStepBytes) {
      const auto step = to.subspan(done, std::min(kGatherStepBytes, to.size() - done));
      shardwright::gather(from.elements, begin + done, step);
      digester.update(step);
    }
    Digest128 digest{};
    std::ranges::copy(digester.finish(), digest.begin());
    return digest;
  }

  Status scatter(std::span<const std::byte> from, const DeviceWindow& to, uint64_t begin) override {
    shardwright::scatter(from, to.elements, begin);
    return {};
  }

  Status copy(const StridedWindow& from, const DeviceWindow& to, ElementRange range) override {
    copy_elements(from, to.elements, range);
    return {};
  }

  bool casts(DType from, DType to) const override { return cast_is_supported(from, to); }

  Status cast(const StridedWindow& from, DType stored, const DeviceWindow& to, DType wanted,
              ElementRange range) override {
    const uint64_t step = std::min(kCastStepElements, range.end - range.begin);
    std::vector<std::byte> source(step * from.element_bytes);
    std::vector<std::byte> target(step * to.elements.element_bytes);
    for (uint64_t begin = range.begin; begin < range.end; begin += step) {
      const uint64_t count = std::min(step, range.end - begin);
      const auto source_bytes = std::span(source).first(count * from.element_bytes);
      const auto target_bytes = std::span(target).first(count * to.elements.element_bytes);
      shardwright::gather(from, begin * from.element_bytes, source_bytes);
      SHW_RETURN_IF_ERROR(cast_elements(stored, source_bytes, wanted, target_bytes));
      shardwright::scatter(target_bytes, to.elements, begin * to.elements.element_bytes);
    }
    return {};
  }

  Status fill_zero(const DeviceWindow& to) override {
    shardwright::fill_zero(to.elements);
    return {};
  }
};

}  // namespace

std::unique_ptr<Device> make_host_device() {
  return std::make_unique<HostDevice>();
}

}  // namespace shardwright::device
