// SPDX-License-Identifier: Apache-2.0
//
// shw_tensor to TensorSpan and back. Checks what the C surface promises to check: flags, dtype,
// device, rank, extents, strides, addresses. Pure, any thread.
#pragma once

#include "core/base/result.h"
#include "core/tensor/tensor_view.h"
#include "shardwright/tensor.h"

namespace shardwright::capi {

// A device number of DLPack.
bool is_known_device(int32_t device);

// `tensor` has our size (it went through the struct reader). All devices that DLPack knows pass.
// Borrows shape and strides.
Result<TensorSpan> span_of_tensor(const shw_tensor& tensor);
// UNIMPLEMENTED naming where the memory lies.
Status not_reached(const TensorSpan& span);
// Additionally that when the host cannot touch the memory.
Result<TensorSpan> host_span_of_tensor(const shw_tensor& tensor);

// Borrows shape and strides from the span.
shw_tensor tensor_of_span(const TensorSpan& span);

}  // namespace shardwright::capi
