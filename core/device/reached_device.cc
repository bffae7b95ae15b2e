// SPDX-License-Identifier: Apache-2.0
#include "core/device/reached_device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/integrity/digest.h"
#include "core/tensor/cast.h"
#include "core/tensor/strided_copy.h"
#include "core/tensor/window_access.h"

namespace shardwright::device {
namespace {

constexpr uint64_t kStepBytes = uint64_t{1} << 20;  // of host memory, per call under way

// Elements of a window as packed bytes: where they lie, or in `room`.
std::span<const std::byte> packed(const StridedWindow& from, ElementRange range,
                                  std::vector<std::byte>* room) {
  const auto bytes = static_cast<size_t>((range.end - range.begin) * from.element_bytes);
  if (window_is_contiguous(from)) return {from.data + range.begin * from.element_bytes, bytes};
  room->resize(bytes);
  shardwright::gather(from, range.begin * from.element_bytes, *room);
  return *room;
}

// The range in steps of as many elements.
template <typename Step>
Status in_steps(ElementRange range, uint64_t elements, const Step& step) {
  for (uint64_t begin = range.begin; begin < range.end; begin += elements)
    SHW_RETURN_IF_ERROR(step(ElementRange{begin, std::min(range.end, begin + elements)}));
  return {};
}

class ReachedDevice final : public Device {
 public:
  std::string_view name() const override { return "reached"; }
  std::span<std::byte> host_bytes(const DeviceWindow&) const override { return {}; }

  Status gather(const DeviceWindow& from, uint64_t begin, std::span<std::byte> to) override {
    return from.access->gather(from.elements, begin, to);
  }
  Result<Digest128> gather_and_digest(const DeviceWindow& from, uint64_t begin,
                                      std::span<std::byte> to) override {
    SHW_RETURN_IF_ERROR(gather(from, begin, to));
    return integrity::xxh3_128(to);
  }
  Status scatter(std::span<const std::byte> from, const DeviceWindow& to, uint64_t begin) override {
    return to.access->scatter(from, to.elements, begin);
  }

  Status copy(const StridedWindow& from, const DeviceWindow& to, ElementRange range) override {
    std::vector<std::byte> room;
    const uint64_t width = from.element_bytes;
    return in_steps(range, kStepBytes / width, [&](ElementRange step) {
      return scatter(packed(from, step, &room), to, step.begin * width);
    });
  }

  bool casts(DType from, DType to) const override { return cast_is_supported(from, to); }
  Status cast(const StridedWindow& from, DType stored, const DeviceWindow& to, DType wanted,
              ElementRange range) override {
    std::vector<std::byte> room;
    std::vector<std::byte> values;
    const uint64_t width = to.elements.element_bytes;
    return in_steps(range, kStepBytes / width, [&](ElementRange step) -> Status {
      values.resize(static_cast<size_t>((step.end - step.begin) * width));
      SHW_RETURN_IF_ERROR(cast_elements(stored, packed(from, step, &room), wanted, values));
      return scatter(values, to, step.begin * width);
    });
  }

  Status fill_zero(const DeviceWindow& to) override {
    const uint64_t bytes = window_bytes(to.elements);
    const std::vector<std::byte> zeros(static_cast<size_t>(std::min(bytes, kStepBytes)));
    return in_steps({0, bytes}, kStepBytes, [&](ElementRange step) {
      return scatter(std::span(zeros).first(static_cast<size_t>(step.end - step.begin)), to,
                     step.begin);
    });
  }
};

}  // namespace

std::unique_ptr<Device> make_reached_device() {
  return std::make_unique<ReachedDevice>();
}

}  // namespace shardwright::device
