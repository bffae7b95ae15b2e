// SPDX-License-Identifier: Apache-2.0
//
// TensorSpan and TensorView: memory of one dense strided tensor that somebody else owns. The maker
// keeps data alive; a span borrows shape and strides as well, a view copies them. Sub-byte dtypes
// are packed little-endian inside bytes and must be contiguous. Value types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright {

enum class DeviceType : int32_t {
  kCpu = 1,
  kCuda = 2,
  kCudaHost = 3,
  kRocm = 10,
  kRocmHost = 11,
  kCudaManaged = 13
};

// True when the host may read and write the memory directly (CPU, CUDA host, ROCm host).
bool device_is_host_accessible(int32_t device_type);

struct TensorSpan {
  std::byte* data = nullptr;  // first element; null allowed when there is no element
  DType dtype = DType::kInvalid;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;  // in elements; empty = row-major
  int32_t device_type = 1;
  int32_t device_id = 0;
  bool read_only = false;
  uint64_t stream = 0;

  int64_t element_count() const;  // shape is valid by construction
  bool is_contiguous() const;     // row-major without gaps (extents of 1 and empty tensors are)
};

struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kInvalid;
  Dims shape;
  Dims strides;
  int32_t device_type = 1;
  int32_t device_id = 0;
  bool read_only = false;
  uint64_t stream = 0;

  // The same tensor, borrowing from this.
  TensorSpan span() const {
    return {data, dtype, shape, strides, device_type, device_id, read_only, stream};
  }
  operator TensorSpan() const { return span(); }  // NOLINT: a view is taken where a span is
  int64_t element_count() const { return span().element_count(); }
  bool is_contiguous() const { return span().is_contiguous(); }
};

// Copies what the span borrows, the memory of the tensor aside.
TensorView view_of(const TensorSpan& span);

// Parameters of make_tensor_span; byte_size 0 = take from shape and strides.
struct TensorArguments {
  void* data = nullptr;
  uint64_t byte_offset = 0;
  uint64_t byte_size = 0;
  DType dtype = DType::kInvalid;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;  // empty = row-major
  int32_t device_type = 1;
  int32_t device_id = 0;
  bool read_only = false;
  uint64_t stream = 0;
};
// Checks rank, extents, strides (not negative) and that all elements lie in byte_size.
// INVALID_ARGUMENT naming what is wrong; UNIMPLEMENTED for non-contiguous sub-byte tensors.
// Strides that mean row-major are dropped. The span borrows shape and strides from the arguments.
Result<TensorSpan> make_tensor_span(const TensorArguments& arguments);
Result<TensorView> make_tensor_view(const TensorArguments& arguments);

}  // namespace shardwright
