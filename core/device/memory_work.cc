// SPDX-License-Identifier: Apache-2.0
//
// Beside a lane lies memory for what takes two steps, such as a sum of float16 in float32. It is
// used in pieces of its size, one after the other as the lane orders them, so that it stays small.
#include "core/device/memory_work.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"
#include "core/concurrency/mutex.h"
#include "core/tensor/cast.h"
#include "core/tensor/ordered_add.h"

namespace shardwright::device {
namespace {

// Elements that the host casts before it adds them: few enough to stay in the nearest cache.
constexpr size_t kHostElements = 2048;
constexpr size_t kWidestElement = 8;
constexpr size_t kScratchBytes = size_t{4} << 20;

size_t width_of(DType dtype) {
  return static_cast<size_t>(dtype_bits(dtype)) / 8;
}

// Calls step(first element, count) for pieces of at most `most` elements.
template <typename Step>
Status in_pieces(size_t elements, size_t most, const Step& step) {
  for (size_t begin = 0; begin < elements; begin += most)
    SHW_RETURN_IF_ERROR(step(begin, std::min(most, elements - begin)));
  return {};
}

Status check_equal(size_t from, size_t to) {
  if (from == to) return {};
  return invalid_argument(fmt::format("a copy of {} bytes to {} bytes", from, to));
}

class HostMemoryWork final : public MemoryWork {
 public:
  bool is_host() const override { return true; }
  Status copy(std::span<const std::byte> from, std::span<std::byte> to) override {
    SHW_RETURN_IF_ERROR(check_equal(from.size(), to.size()));
    copy_bytes(from, to);
    return {};
  }
  Status upload(std::span<const std::byte> host, std::span<std::byte> to) override {
    return copy(host, to);
  }
  Status download(std::span<const std::byte> from, std::span<std::byte> host) override {
    return copy(from, host);
  }
  Status zero(std::span<std::byte> memory) override {
    zero_bytes(memory);
    return {};
  }
  Status cast(DType from, std::span<const std::byte> source, DType to,
              std::span<std::byte> target) override {
    return cast_elements(from, source, to, target);
  }
  Status copy_runs(const ElementCopy& copy) override { return copy_elements_on_host(copy); }
  Status add_to(DType dtype, std::span<const std::byte> more,
                std::span<std::byte> target) override {
    return shardwright::add_to(dtype, more, target);
  }
  Status add_in_order(DType dtype, std::span<const std::byte> parts, size_t part_count,
                      std::span<std::byte> target) override {
    return shardwright::add_in_order(dtype, parts, part_count, 1.0, target);
  }
  Status scale(DType dtype, double factor, std::span<std::byte> target) override {
    return scale_elements(dtype, factor, target);
  }
  Status add_cast(DType from, std::span<const std::byte> more, DType to,
                  std::span<std::byte> target) override {
    if (from == to) return shardwright::add_to(to, more, target);
    alignas(64) std::array<std::byte, kHostElements * kWidestElement> cast;
    const size_t from_bytes = width_of(from);
    const size_t to_bytes = width_of(to);
    return in_pieces(target.size() / to_bytes, kHostElements, [&](size_t begin, size_t count) {
      const std::span<std::byte> piece(cast.data(), count * to_bytes);
      SHW_RETURN_IF_ERROR(
          cast_elements(from, more.subspan(begin * from_bytes, count * from_bytes), to, piece));
      return shardwright::add_to(to, piece, target.subspan(begin * to_bytes, count * to_bytes));
    });
  }
  Status finish() override { return {}; }
  void settle() noexcept override {}
};

// One run of elements.
ElementCopy run_of(DType from, const std::byte* source, DType to, std::byte* target,
                   size_t elements) {
  ElementCopy copy;
  copy.source = source;
  copy.target = target;
  copy.columns = elements;
  copy.source_pitch = elements;
  copy.target_pitch = elements;
  copy.source_dtype = from;
  copy.target_dtype = to;
  return copy;
}

class LaneMemoryWork final : public MemoryWork {
 public:
  LaneMemoryWork(std::shared_ptr<LaneDevice> device, LanePtr lane)
      : device_(std::move(device)), lane_(std::move(lane)) {}
  ~LaneMemoryWork() override {
    lane_.reset();  // waits for what uses the memory
    device_->release(scratch_);
  }
  LaneMemoryWork(const LaneMemoryWork&) = delete;
  LaneMemoryWork& operator=(const LaneMemoryWork&) = delete;

  bool is_host() const override { return false; }
  Status copy(std::span<const std::byte> from, std::span<std::byte> to) override {
    return move(CopyKind::kDeviceToDevice, from, to);
  }
  Status upload(std::span<const std::byte> host, std::span<std::byte> to) override {
    return move(CopyKind::kHostToDevice, host, to);
  }
  Status download(std::span<const std::byte> from, std::span<std::byte> host) override {
    return move(CopyKind::kDeviceToHost, from, host);
  }
  Status zero(std::span<std::byte> memory) override SHW_EXCLUDES(mutex_) {
    if (memory.empty()) return {};
    const MutexLock lock(mutex_);
    pending_ = true;
    return device_->fill_zero(*lane_, memory);
  }
  Status cast(DType from, std::span<const std::byte> source, DType to,
              std::span<std::byte> target) override {
    SHW_RETURN_IF_ERROR(check_equal(source.size() / width_of(from), target.size() / width_of(to)));
    return copy_runs(run_of(from, source.data(), to, target.data(), target.size() / width_of(to)));
  }
  Status copy_runs(const ElementCopy& copy) override SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return put(copy);
  }
  Status add_to(DType dtype, std::span<const std::byte> more,
                std::span<std::byte> target) override {
    SHW_RETURN_IF_ERROR(check_equal(more.size(), target.size()));
    ElementCopy sum =
        run_of(dtype, more.data(), dtype, target.data(), target.size() / width_of(dtype));
    sum.adds = true;
    return copy_runs(sum);
  }
  Status scale(DType dtype, double factor, std::span<std::byte> target) override {
    ElementCopy scaled =
        run_of(dtype, target.data(), dtype, target.data(), target.size() / width_of(dtype));
    scaled.scale = factor;
    return factor == 1.0 ? Status() : copy_runs(scaled);
  }
  Status add_cast(DType from, std::span<const std::byte> more, DType to,
                  std::span<std::byte> target) override SHW_EXCLUDES(mutex_) {
    if (from == to) return add_to(to, more, target);
    const MutexLock lock(mutex_);
    SHW_RETURN_IF_ERROR(need_scratch());
    const size_t width = width_of(to);
    return in_pieces(
        target.size() / width, kScratchBytes / width,
        [&](size_t begin, size_t count) SHW_NO_THREAD_SAFETY_ANALYSIS {
          SHW_RETURN_IF_ERROR(
              put(run_of(from, more.data() + begin * width_of(from), to, scratch_.data(), count)));
          ElementCopy sum = run_of(to, scratch_.data(), to, target.data() + begin * width, count);
          sum.adds = true;
          return put(sum);
        });
  }
  // float16 and bfloat16 are summed in float32 and rounded once.
  Status add_in_order(DType dtype, std::span<const std::byte> parts, size_t part_count,
                      std::span<std::byte> target) override SHW_EXCLUDES(mutex_) {
    SHW_RETURN_IF_ERROR(check_equal(parts.size(), target.size() * part_count));
    const MutexLock lock(mutex_);
    const size_t elements = target.size() / width_of(dtype);
    const bool is_wide = dtype != DType::kFloat16 && dtype != DType::kBfloat16;
    if (is_wide) return sum_parts(dtype, parts, part_count, dtype, 0, elements, target.data());
    SHW_RETURN_IF_ERROR(need_scratch());
    const size_t most = kScratchBytes / width_of(DType::kFloat32);
    return in_pieces(elements, most, [&](size_t begin, size_t count) SHW_NO_THREAD_SAFETY_ANALYSIS {
      SHW_RETURN_IF_ERROR(
          sum_parts(dtype, parts, part_count, DType::kFloat32, begin, count, scratch_.data()));
      return put(run_of(DType::kFloat32, scratch_.data(), dtype,
                        target.data() + begin * width_of(dtype), count));
    });
  }

  Status finish() override SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    wait();
    return std::exchange(failure_, Status());
  }
  void settle() noexcept override SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    wait();
  }

 private:
  Status move(CopyKind kind, std::span<const std::byte> from, std::span<std::byte> to)
      SHW_EXCLUDES(mutex_) {
    SHW_RETURN_IF_ERROR(check_equal(from.size(), to.size()));
    if (from.empty()) return {};
    const MutexLock lock(mutex_);
    pending_ = true;
    return device_->copy(*lane_, kind, from, to);
  }
  Status put(const ElementCopy& copy) SHW_REQUIRES(mutex_) {
    if (copy.rows == 0 || copy.columns == 0) return {};
    pending_ = true;
    return device_->copy_elements(*lane_, copy);
  }
  // Elements [begin, begin + count) of all parts.
  Status sum_parts(DType dtype, std::span<const std::byte> parts, size_t part_count,
                   DType sum_dtype, size_t begin, size_t count, std::byte* sum)
      SHW_REQUIRES(mutex_) {
    const size_t part_bytes = parts.size() / std::max<size_t>(part_count, 1);
    for (size_t part = 0; part < part_count; ++part) {
      ElementCopy more = run_of(dtype, parts.data() + part * part_bytes + begin * width_of(dtype),
                                sum_dtype, sum, count);
      more.adds = part > 0;
      SHW_RETURN_IF_ERROR(put(more));
    }
    return {};
  }
  Status need_scratch() SHW_REQUIRES(mutex_) {
    if (!scratch_.empty()) return {};
    SHW_ASSIGN_OR_RETURN(scratch_, device_->allocate(kScratchBytes));
    return {};
  }
  void wait() noexcept SHW_REQUIRES(mutex_) {
    if (!pending_) return;
    pending_ = false;
    Status outcome = without_exceptions(
        "waiting for a lane", [&]() SHW_NO_THREAD_SAFETY_ANALYSIS { return lane_->synchronize(); });
    if (failure_.ok()) failure_ = std::move(outcome);
  }

  const std::shared_ptr<LaneDevice> device_;  // co-owned with whoever made it
  Mutex mutex_;
  LanePtr lane_ SHW_GUARDED_BY(mutex_);
  std::span<std::byte> scratch_ SHW_GUARDED_BY(mutex_);
  Status failure_ SHW_GUARDED_BY(mutex_);
  bool pending_ SHW_GUARDED_BY(mutex_) = false;  // on the lane, since it was waited for
};

}  // namespace

Result<std::shared_ptr<MemoryWork>> make_memory_work(std::shared_ptr<LaneDevice> device) {
  return without_exceptions(
      "making the work of a device", [&]() -> Result<std::shared_ptr<MemoryWork>> {
        if (device->is_host())
          return std::shared_ptr<MemoryWork>(std::make_shared<HostMemoryWork>());
        SHW_ASSIGN_OR_RETURN(LanePtr lane, device->make_lane(0));
        return std::shared_ptr<MemoryWork>(
            std::make_shared<LaneMemoryWork>(std::move(device), std::move(lane)));
      });
}

}  // namespace shardwright::device
