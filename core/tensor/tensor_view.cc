// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor_view.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"

namespace shardwright {
namespace {

// DLPack device numbers that may appear in a descriptor.
constexpr int32_t kKnownDevices[] = {1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};

bool device_is_known(int32_t device_type) {
  return std::find(std::begin(kKnownDevices), std::end(kKnownDevices), device_type) !=
         std::end(kKnownDevices);
}

bool is_row_major(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= shape[i];  // a factor of the element count, which fits
  }
  return true;
}

Status check_kind(const TensorArguments& arguments) {
  if (!dtype_is_valid(arguments.dtype))
    return invalid_argument("the dtype of the tensor is not one of the table");
  if (!device_is_known(arguments.device_type)) {
    return unimplemented(fmt::format("device type {} is not supported", arguments.device_type));
  }
  if (arguments.shape.size() > static_cast<size_t>(kMaxTensorRank)) {
    return invalid_argument(fmt::format("the tensor has {} dimensions, the limit is {}",
                                        arguments.shape.size(), kMaxTensorRank));
  }
  if (!arguments.strides.empty() && arguments.strides.size() != arguments.shape.size()) {
    return invalid_argument(fmt::format("the tensor has {} strides for {} dimensions",
                                        arguments.strides.size(), arguments.shape.size()));
  }
  return {};
}

// Elements from the first to the last, both included. Strides of extents up to 1 do not matter.
Result<int64_t> reach_elements(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] <= 1) continue;
    if (strides[i] < 0) {
      return invalid_argument(
          fmt::format("stride {} of the tensor is negative: {}", i, strides[i]));
    }
    int64_t step = 0;
    if (!checked_multiply(shape[i] - 1, strides[i], &step) || !checked_add(last, step, &last)) {
      return invalid_argument("shape and strides of the tensor reach beyond 63 bits of elements");
    }
  }
  if (!checked_add(last, int64_t{1}, &last)) {
    return invalid_argument("shape and strides of the tensor reach beyond 63 bits of elements");
  }
  return last;
}

// Bytes that the tensor needs behind its first element fit the buffer and the address space.
Status check_memory(const TensorArguments& arguments, uint64_t needed_bytes) {
  if (arguments.byte_size > uint64_t{INT64_MAX} || arguments.byte_offset > uint64_t{INT64_MAX}) {
    return invalid_argument("byte_size and byte_offset of a tensor must fit 63 bits");
  }
  if (arguments.byte_size != 0 && needed_bytes > arguments.byte_size) {
    return invalid_argument(
        fmt::format("shape and strides of the tensor need {} bytes, its buffer has {}",
                    needed_bytes, arguments.byte_size));
  }
  if (needed_bytes > 0 && arguments.data == nullptr) {
    return invalid_argument("the data pointer of a tensor with elements is NULL");
  }
  uint64_t end = reinterpret_cast<uintptr_t>(arguments.data);
  if (!checked_add(end, arguments.byte_offset, &end) || !checked_add(end, needed_bytes, &end)) {
    return invalid_argument("the tensor reaches beyond the address space");
  }
  return {};
}

}  // namespace

bool device_is_host_accessible(int32_t device_type) {
  return device_type == static_cast<int32_t>(DeviceType::kCpu) ||
         device_type == static_cast<int32_t>(DeviceType::kCudaHost) ||
         device_type == static_cast<int32_t>(DeviceType::kRocmHost);
}

int64_t TensorSpan::element_count() const {
  return element_count_of(shape);
}

bool TensorSpan::is_contiguous() const {
  return strides.empty() || is_row_major(shape, strides);
}

TensorView view_of(const TensorSpan& span) {
  return {span.data,        span.dtype,     Dims(span.shape), Dims(span.strides),
          span.device_type, span.device_id, span.read_only,   span.stream};
}

Result<TensorSpan> make_tensor_span(const TensorArguments& arguments) {
  SHW_RETURN_IF_ERROR(check_kind(arguments));
  SHW_ASSIGN_OR_RETURN(const int64_t count, checked_element_count(arguments.shape));
  SHW_ASSIGN_OR_RETURN(uint64_t needed_bytes, dtype_packed_bytes(arguments.dtype, count));
  const bool row_major =
      arguments.strides.empty() || is_row_major(arguments.shape, arguments.strides);
  if (!row_major) {
    if (dtype_is_subbyte(arguments.dtype)) {
      return unimplemented(
          fmt::format("a {} tensor must be contiguous", dtype_name(arguments.dtype)));
    }
    SHW_ASSIGN_OR_RETURN(const int64_t reach, reach_elements(arguments.shape, arguments.strides));
    SHW_ASSIGN_OR_RETURN(needed_bytes, dtype_packed_bytes(arguments.dtype, reach));
  }
  SHW_RETURN_IF_ERROR(check_memory(arguments, needed_bytes));

  TensorSpan span;
  span.data = arguments.data == nullptr
                  ? nullptr
                  : static_cast<std::byte*>(arguments.data) + arguments.byte_offset;
  span.dtype = arguments.dtype;
  span.shape = arguments.shape;
  if (!row_major) span.strides = arguments.strides;
  span.device_type = arguments.device_type;
  span.device_id = arguments.device_id;
  span.read_only = arguments.read_only;
  span.stream = arguments.stream;
  return span;
}

Result<TensorView> make_tensor_view(const TensorArguments& arguments) {
  SHW_ASSIGN_OR_RETURN(const TensorSpan span, make_tensor_span(arguments));
  return view_of(span);
}

}  // namespace shardwright
