// SPDX-License-Identifier: Apache-2.0
//
// Tasks reach the driver as a function and a pointer; their failures are kept by the lane, which
// outlives what was put on it. An event is asked for, not waited for, where there is a time limit.
#include "core/device/cuda/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/base/cuda/cuda_calls.h"
#include "core/base/without_exceptions.h"
#include "core/concurrency/cancellation.h"
#include "core/concurrency/mutex.h"
#include "core/device/cuda/kernels_internal.h"
#include "core/tensor/tensor_view.h"

namespace shardwright::device {
namespace {

using cuda::DeviceScope;
using cuda::status_of;
using internal::launch_copy;
using internal::NumberType;

// How long the host sleeps at most before it asks again for an event with a time limit.
constexpr int64_t kPollNs = 200'000;

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  ~CudaEvent() override { static_cast<void>(cudaEventDestroy(event_)); }  // it may be under way
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  Result<bool> wait(int64_t timeout_ns) const override {
    if (timeout_ns < 0) {
      SHW_RETURN_IF_ERROR(status_of(cudaEventSynchronize(event_), "waiting for an event"));
      return true;
    }
    CallControl patience;
    patience.end_within(real_clock().monotonic_ns(), timeout_ns);
    for (;;) {
      SHW_ASSIGN_OR_RETURN(const bool passed, ask());
      if (passed) return true;
      const int64_t left_ns = patience.remaining_ns();
      if (left_ns == 0) return false;
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(left_ns, kPollNs)));
    }
  }
  bool has_passed() const override {
    const Result<bool> passed = ask();
    return passed.ok() && *passed;
  }
  cudaEvent_t get() const { return event_; }

 private:
  Result<bool> ask() const {
    const cudaError_t answer = cudaEventQuery(event_);
    if (answer == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());  // it is no failure
      return false;
    }
    SHW_RETURN_IF_ERROR(status_of(answer, "asking for an event"));
    return true;
  }

  const cudaEvent_t event_;
};

class CudaLane final : public Lane {
 public:
  CudaLane(int32_t device, cudaStream_t stream) : device_(device), stream_(stream) {}
  ~CudaLane() override {
    // What was put on it has this lane; its failures are lost, as the interface says.
    static_cast<void>(cudaStreamSynchronize(stream_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;

  Status submit(std::function<Status()> task) override {
    std::unique_ptr<Submitted> submitted(new (std::nothrow) Submitted{this, std::move(task)});
    if (submitted == nullptr) return out_of_memory();
    const DeviceScope scope(device_);
    SHW_RETURN_IF_ERROR(scope.status());
    SHW_RETURN_IF_ERROR(status_of(cudaLaunchHostFunc(stream_, &CudaLane::run, submitted.get()),
                                  "submitting to a stream"));
    static_cast<void>(submitted.release());  // run() has it
    return {};
  }
  Status record(Event& event) override {
    const DeviceScope scope(device_);
    SHW_RETURN_IF_ERROR(scope.status());
    return status_of(cudaEventRecord(static_cast<CudaEvent&>(event).get(), stream_),
                     "recording an event");
  }
  Status wait_for(const Event& event) override {
    const DeviceScope scope(device_);
    SHW_RETURN_IF_ERROR(scope.status());
    return status_of(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).get(), 0),
                     "waiting for an event on a stream");
  }
  Status synchronize() override SHW_EXCLUDES(mutex_) {
    const Status own = status_of(cudaStreamSynchronize(stream_), "waiting for a stream");
    const MutexLock lock(mutex_);
    Status first = std::exchange(first_failure_, Status());
    return first.ok() ? own : first;
  }
  cudaStream_t stream() const { return stream_; }

 private:
  struct Submitted {
    CudaLane* lane;  // waits for it before it goes
    std::function<Status()> run;
  };

  static void CUDART_CB run(void* data) {
    const std::unique_ptr<Submitted> task(static_cast<Submitted*>(data));
    const Status outcome = without_exceptions("a task of a lane", task->run);
    if (outcome.ok()) return;
    const MutexLock lock(task->lane->mutex_);
    if (task->lane->first_failure_.ok()) task->lane->first_failure_ = outcome;
  }

  const int32_t device_;
  const cudaStream_t stream_;
  Mutex mutex_;
  Status first_failure_ SHW_GUARDED_BY(mutex_);
};

cudaMemcpyKind kind_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return cudaMemcpyHostToDevice;
    case CopyKind::kDeviceToHost:
      return cudaMemcpyDeviceToHost;
    case CopyKind::kDeviceToDevice:
      return cudaMemcpyDeviceToDevice;
  }
  return cudaMemcpyDefault;
}

// check_element_copy leaves no other dtype.
NumberType number_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return NumberType::kFloat16;
    case DType::kBfloat16:
      return NumberType::kBfloat16;
    case DType::kFloat64:
      return NumberType::kFloat64;
    default:
      return NumberType::kFloat32;
  }
}

cudaError_t convert(const ElementCopy& copy, cudaStream_t stream) {
  return launch_copy(number_of(copy.source_dtype), number_of(copy.target_dtype),
                     {copy.source, copy.target, copy.rows, copy.columns, copy.source_pitch,
                      copy.target_pitch, copy.scale, copy.adds},
                     stream);
}

// One run, or runs that lie back to back on both sides, in one piece: what is wide is not held up
// by the limits on pitches.
cudaError_t copy_runs(const ElementCopy& copy, cudaStream_t stream) {
  if (copy.source == copy.target) return cudaSuccess;
  const auto element = static_cast<size_t>(dtype_bits(copy.source_dtype) / 8);
  const size_t width = copy.columns * element;
  const bool is_one_run =
      copy.rows == 1 || (copy.source_pitch == copy.columns && copy.target_pitch == copy.columns);
  if (is_one_run)
    return cudaMemcpyAsync(copy.target, copy.source, copy.rows * width, cudaMemcpyDeviceToDevice,
                           stream);
  if (copy.source_pitch >= copy.columns)
    return cudaMemcpy2DAsync(copy.target, copy.target_pitch * element, copy.source,
                             copy.source_pitch * element, width, copy.rows,
                             cudaMemcpyDeviceToDevice, stream);
  // Runs that repeat what is read, which CUDA does not call a pitch.
  for (uint64_t row = 0; row < copy.rows; ++row) {
    const cudaError_t error = cudaMemcpyAsync(copy.target + row * copy.target_pitch * element,
                                              copy.source + row * copy.source_pitch * element,
                                              width, cudaMemcpyDeviceToDevice, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

class CudaLaneDevice final : public LaneDevice {
 public:
  explicit CudaLaneDevice(int32_t number) : number_(number) {}

  std::string_view name() const override { return "cuda"; }
  bool is_host() const override { return false; }
  DeviceNumber number() const override {
    return {static_cast<int32_t>(DeviceType::kCuda), number_};
  }

  Result<LanePtr> make_lane(int32_t priority) override {
    const DeviceScope scope(number_);
    SHW_RETURN_IF_ERROR(scope.status());
    int least = 0;
    int greatest = 0;  // the numerically smallest is the most urgent
    SHW_RETURN_IF_ERROR(status_of(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                  "asking for priorities of streams"));
    cudaStream_t stream = nullptr;
    SHW_RETURN_IF_ERROR(
        status_of(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                               std::clamp(-priority, greatest, least)),
                  "making a stream"));
    auto lane = std::unique_ptr<CudaLane>(new (std::nothrow) CudaLane(number_, stream));
    if (lane != nullptr) return LanePtr(std::move(lane));
    static_cast<void>(cudaStreamDestroy(stream));  // nothing is on it
    return out_of_memory();
  }

  Result<EventPtr> make_event() override {
    const DeviceScope scope(number_);
    SHW_RETURN_IF_ERROR(scope.status());
    cudaEvent_t event = nullptr;
    SHW_RETURN_IF_ERROR(
        status_of(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"));
    auto made = std::unique_ptr<CudaEvent>(new (std::nothrow) CudaEvent(event));
    if (made != nullptr) return EventPtr(std::move(made));
    static_cast<void>(cudaEventDestroy(event));  // nobody has recorded it
    return out_of_memory();
  }

  Result<std::span<std::byte>> allocate(uint64_t bytes) override {
    void* memory = nullptr;
    return allocate_by(
        bytes, [&] { return cudaMalloc(&memory, bytes); }, &memory, "memory of the device");
  }
  void release(std::span<std::byte> memory) noexcept override {
    if (memory.empty()) return;
    const DeviceScope scope(number_);
    static_cast<void>(cudaFree(memory.data()));  // what failed on the device shows where it is used
  }

  Result<std::span<std::byte>> allocate_pinned(uint64_t bytes) override {
    void* memory = nullptr;
    return allocate_by(
        bytes, [&] { return cudaHostAlloc(&memory, bytes, cudaHostAllocPortable); }, &memory,
        "pinned memory of the host");
  }
  void release_pinned(std::span<std::byte> memory) noexcept override {
    if (memory.empty()) return;
    const DeviceScope scope(number_);
    static_cast<void>(cudaFreeHost(memory.data()));  // as above
  }

  Status copy(Lane& lane, CopyKind kind, std::span<const std::byte> source,
              std::span<std::byte> target) override {
    if (source.size() != target.size())
      return invalid_argument(
          fmt::format("a copy of {} bytes to {} bytes", source.size(), target.size()));
    if (source.empty()) return {};
    const DeviceScope scope(number_);
    SHW_RETURN_IF_ERROR(scope.status());
    return status_of(cudaMemcpyAsync(target.data(), source.data(), source.size(), kind_of(kind),
                                     static_cast<CudaLane&>(lane).stream()),
                     "submitting a copy");
  }

  Status copy_elements(Lane& lane, const ElementCopy& copy) override {
    SHW_RETURN_IF_ERROR(check_element_copy(copy));
    if (copy.rows == 0 || copy.columns == 0) return {};
    const DeviceScope scope(number_);
    SHW_RETURN_IF_ERROR(scope.status());
    const cudaStream_t stream = static_cast<CudaLane&>(lane).stream();
    return status_of(copies_bytes(copy) ? copy_runs(copy, stream) : convert(copy, stream),
                     "submitting a copy of elements");
  }
  Status fill_zero(Lane& lane, std::span<std::byte> target) override {
    if (target.empty()) return {};
    const DeviceScope scope(number_);
    SHW_RETURN_IF_ERROR(scope.status());
    return status_of(
        cudaMemsetAsync(target.data(), 0, target.size(), static_cast<CudaLane&>(lane).stream()),
        "submitting zeros");
  }

  // Whoever computes on a stream of its own says so with each call.
  uint64_t current_stream() const override { return 0; }

 private:
  template <typename Allocate>
  Result<std::span<std::byte>> allocate_by(uint64_t bytes, const Allocate& call, void** memory,
                                           std::string_view what) {
    if (bytes == 0) return std::span<std::byte>();
    const DeviceScope scope(number_);
    SHW_RETURN_IF_ERROR(scope.status());
    const cudaError_t error = call();
    if (error != cudaSuccess)
      return without_exceptions("allocating", [&]() -> Status {
        return status_of(error, fmt::format("allocating {} bytes of {}", bytes, what));
      });
    return std::span(static_cast<std::byte*>(*memory), static_cast<size_t>(bytes));
  }

  const int32_t number_;
};

}  // namespace

Result<std::shared_ptr<LaneDevice>> make_cuda_lane_device(int32_t number) {
  return without_exceptions(
      "opening a CUDA device", [number]() -> Result<std::shared_ptr<LaneDevice>> {
        SHW_RETURN_IF_ERROR(cuda::check_device(number));
        return std::shared_ptr<LaneDevice>(std::make_shared<CudaLaneDevice>(number));
      });
}

}  // namespace shardwright::device
