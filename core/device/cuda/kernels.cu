// SPDX-License-Identifier: Apache-2.0
//
// One kernel per pair of dtypes. A block takes columns of a run, the grid as many runs as it may,
// and each thread goes on in steps of the grid, so that any size fits. Compiled without fused
// multiply-add: a product is rounded before it is added, as on the host.
#include <cuda_runtime.h>

#include "core/device/cuda/kernels_internal.h"
#include "core/tensor/number_codes.h"

namespace shardwright::device::internal {
namespace {

using shardwright::internal::Bfloat16Number;
using shardwright::internal::Float16Number;
using shardwright::internal::PlainNumber;
using Float32Number = PlainNumber<float>;
using Float64Number = PlainNumber<double>;

constexpr unsigned kThreads = 256;
constexpr uint64_t kMostBlocks = 1024;  // of one run; threads go on from there
constexpr uint64_t kMostRuns = 65535;   // of a grid, by what CUDA allows

template <typename Source, typename Target, typename Sum>
__global__ void copy_numbers(KernelCopy copy) {
  copy_share<Source, Target, Sum>(
      copy, {.first_row = blockIdx.y,
             .row_step = gridDim.y,
             .first_column = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x,
             .column_step = static_cast<uint64_t>(gridDim.x) * blockDim.x});
}

template <typename Source, typename Target, typename Sum>
cudaError_t launch(const KernelCopy& copy, cudaStream_t stream) {
  if (copy.rows == 0 || copy.columns == 0) return cudaSuccess;
  const uint64_t blocks = (copy.columns + kThreads - 1) / kThreads;
  const dim3 grid(static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
                  static_cast<unsigned>(copy.rows < kMostRuns ? copy.rows : kMostRuns));
  copy_numbers<Source, Target, Sum><<<grid, kThreads, 0, stream>>>(copy);
  return cudaGetLastError();
}

// Sum: double where one of the two is, else float.
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
