// SPDX-License-Identifier: Apache-2.0
//
// What runs on the GPU: copies of elements that convert, multiply or add them. The values are those
// of copy_elements_on_host, bit by bit, but for which NaN a float64 one becomes as float32.
#pragma once

#include <cuda_runtime_api.h>

#include "core/device/cuda/kernel_body_internal.h"

namespace shardwright::device::internal {

// Puts the copy on the stream of the device that this thread has chosen. cudaErrorNotSupported for
// a pair that check_element_copy refuses.
cudaError_t launch_copy(NumberType from, NumberType to, const KernelCopy& copy,
                        cudaStream_t stream);

}  // namespace shardwright::device::internal
