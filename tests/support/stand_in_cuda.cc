// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for the CUDA runtime, so that what is written for it runs where there is no GPU:
// streams are lanes of the host, memory is the host's, kernels are the loops of their threads. The
// linker takes these functions in place of those of the archive. One device; any thread.
#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/device/cuda/kernels_internal.h"
#include "core/device/lane_device.h"

namespace {

using shardwright::Status;
using shardwright::device::Event;
using shardwright::device::Lane;
using shardwright::device::LaneDevice;

constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr size_t kAlignment = 256;

LaneDevice& host() {
  static const auto kHost = shardwright::device::make_host_lane_device(false);
  return *kHost;
}

// A lane that is waited for without memory, as a stream is.
struct Stream {
  std::unique_ptr<Lane> lane = host().make_lane(0).value();
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t submitted = 0;
  uint64_t done = 0;
};

// The stream that has no name.
Stream& default_stream() {
  static Stream stream;
  return stream;
}

Stream& stream_of(cudaStream_t stream) {
  return stream == nullptr ? default_stream() : *reinterpret_cast<Stream*>(stream);
}

Lane& lane_of(cudaStream_t stream) {
  return *stream_of(stream).lane;
}

Event& event_of(cudaEvent_t event) {
  return *reinterpret_cast<Event*>(event);
}

cudaError_t answer(const Status& status) {
  return status.ok() ? cudaSuccess : cudaErrorMemoryAllocation;
}

// C functions throw nothing.
template <typename Body>
cudaError_t guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  }
}

template <typename Task>
cudaError_t put(cudaStream_t to, const Task& task) {
  Stream& stream = stream_of(to);
  {
    const std::lock_guard<std::mutex> lock(stream.mutex);
    ++stream.submitted;
  }
  const auto ended = [&stream] {
    const std::lock_guard<std::mutex> lock(stream.mutex);
    ++stream.done;
    stream.changed.notify_all();
  };
  const cudaError_t result = guarded([&] {
    return answer(stream.lane->submit([task, ended] {
      task();
      ended();
      return Status();
    }));
  });
  if (result != cudaSuccess) ended();
  return result;
}

cudaError_t allocate(void** out, size_t bytes) {
  if (bytes > kMostBytes) return cudaErrorMemoryAllocation;
  *out = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  return *out == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t release(void* memory) {
  std::free(memory);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "the stand-in failed";
}
const char* cudaGetErrorName(cudaError_t) {
  return "cudaErrorStandIn";
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  if (priority > 0 || priority < -5) return cudaErrorInvalidValue;
  return guarded([stream] {
    *stream = reinterpret_cast<cudaStream_t>(new Stream);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<Stream*>(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Stream& waited = stream_of(stream);
  std::unique_lock<std::mutex> lock(waited.mutex);
  waited.changed.wait(lock, [&] { return waited.done == waited.submitted; });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return answer(lane_of(stream).wait_for(event_of(event)));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return put(stream, [function, data] { function(data); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  auto made = host().make_event();
  if (!made.ok()) return answer(made.status());
  *event = reinterpret_cast<cudaEvent_t>(made->release());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return answer(lane_of(stream).record(event_of(event)));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return event_of(event).has_passed() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return answer(event_of(event).wait(-1).status());
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return allocate(memory, bytes);
}
cudaError_t cudaFree(void* memory) {
  return release(memory);
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return allocate(memory, bytes);
}
cudaError_t cudaFreeHost(void* memory) {
  return release(memory);
}
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind) {
  std::memcpy(target, source, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return put(stream, [target, source, bytes] { std::memcpy(target, source, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind,
                              cudaStream_t stream) {
  if (width > target_pitch || width > source_pitch) return cudaErrorInvalidPitchValue;
  return put(stream, [=] {
    for (size_t row = 0; row < height; ++row)
      std::memcpy(static_cast<std::byte*>(target) + row * target_pitch,
                  static_cast<const std::byte*>(source) + row * source_pitch, width);
  });
}
cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  return put(stream, [target, value, bytes] { std::memset(target, value, bytes); });
}

}  // extern "C"

namespace shardwright::device::internal {
namespace {

using shardwright::internal::Bfloat16Number;
using shardwright::internal::Float16Number;
using Float32Number = shardwright::internal::PlainNumber<float>;
using Float64Number = shardwright::internal::PlainNumber<double>;

template <typename Source, typename Target, typename Sum>
cudaError_t launch(const KernelCopy& copy, cudaStream_t stream) {
  return put(stream, [copy] { copy_share<Source, Target, Sum>(copy, {}); });
}

template <typename Source, typename Sum>
cudaError_t launch_to(NumberType to, const KernelCopy& copy, cudaStream_t stream) {
  switch (to) {
    case NumberType::kFloat16:
      return launch<Source, Float16Number, Sum>(copy, stream);
    case NumberType::kBfloat16:
      return launch<Source, Bfloat16Number, Sum>(copy, stream);
    case NumberType::kFloat32:
      return launch<Source, Float32Number, Sum>(copy, stream);
    case NumberType::kFloat64:
      return launch<Source, Float64Number, double>(copy, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace

// As in kernels.cu.
cudaError_t launch_copy(NumberType from, NumberType to, const KernelCopy& copy,
                        cudaStream_t stream) {
  switch (from) {
    case NumberType::kFloat16:
      return launch_to<Float16Number, float>(to, copy, stream);
    case NumberType::kBfloat16:
      return launch_to<Bfloat16Number, float>(to, copy, stream);
    case NumberType::kFloat32:
      return launch_to<Float32Number, float>(to, copy, stream);
    case NumberType::kFloat64:
      return launch_to<Float64Number, double>(to, copy, stream);
  }
  return cudaErrorNotSupported;
}

}  // namespace shardwright::device::internal
