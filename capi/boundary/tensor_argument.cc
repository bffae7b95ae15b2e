// SPDX-License-Identifier: Apache-2.0
//
// The rules about shapes and strides live in core/tensor; here is what only the C struct has.
#include "capi/boundary/tensor_argument.h"

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/device/devices.h"
#include "core/tensor/dtype_numbers.h"

namespace shardwright::capi {
namespace {

Status check_descriptor(const shw_tensor& tensor) {
  if ((tensor.flags & SHW_TENSOR_SUBBYTE_PADDED) != 0) {
    return unimplemented(
        "sub-byte elements that take a whole byte each are not supported: pack them");
  }
  if (!is_known_device(tensor.device_type)) {
    return unimplemented(fmt::format("device type {} is unknown", tensor.device_type));
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxTensorRank) {
    return invalid_argument(
        fmt::format("ndim is {}, expected 0 to {}", tensor.ndim, kMaxTensorRank));
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) {
    return invalid_argument(fmt::format("shape is NULL, but ndim is {}", tensor.ndim));
  }
  return {};
}

}  // namespace

bool is_known_device(int32_t device) {
  return (device >= SHW_DEVICE_CPU && device <= SHW_DEVICE_OPENCL) ||
         (device >= SHW_DEVICE_VULKAN && device <= SHW_DEVICE_TRAINIUM);
}

Result<TensorSpan> span_of_tensor(const shw_tensor& given) {
  shw_tensor tensor = given;
  if (tensor.device_type == 0) tensor.device_type = SHW_DEVICE_CPU;
  SHW_RETURN_IF_ERROR(check_descriptor(tensor));
  TensorArguments arguments;
  SHW_ASSIGN_OR_RETURN(arguments.dtype, dtype_from_number(tensor.dtype));
  const auto rank = static_cast<size_t>(tensor.ndim);
  arguments.data = tensor.data;
  arguments.byte_offset = tensor.byte_offset;
  arguments.byte_size = tensor.byte_size;
  if (rank != 0) arguments.shape = {tensor.shape, rank};
  if (rank != 0 && tensor.strides != nullptr) arguments.strides = {tensor.strides, rank};
  arguments.device_type = tensor.device_type;
  arguments.device_id = tensor.device_id;
  arguments.read_only = (tensor.flags & SHW_TENSOR_READ_ONLY) != 0;
  arguments.stream = tensor.stream;
  return make_tensor_span(arguments);
}

Status not_reached(const TensorSpan& span) {
  return unimplemented(
             fmt::format("the tensor lies on {}, which nothing in this build can reach: copy it "
                         "to host memory",
                         device::device_text(span.device_type, span.device_id)))
      .with_detail("plugin", "device");
}

Result<TensorSpan> host_span_of_tensor(const shw_tensor& tensor) {
  SHW_ASSIGN_OR_RETURN(TensorSpan span, span_of_tensor(tensor));
  if (!device_is_host_accessible(span.device_type)) return not_reached(span);
  return span;
}

shw_tensor tensor_of_span(const TensorSpan& span) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.flags = span.read_only ? SHW_TENSOR_READ_ONLY : 0;
  tensor.data = span.data;
  tensor.device_type = span.device_type;
  tensor.device_id = span.device_id;
  tensor.dtype = static_cast<int32_t>(span.dtype);
  tensor.ndim = static_cast<int32_t>(span.shape.size());
  tensor.shape = span.shape.data();
  tensor.strides = span.strides.empty() ? nullptr : span.strides.data();
  tensor.stream = span.stream;
  return tensor;
}

}  // namespace shardwright::capi
