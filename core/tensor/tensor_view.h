// SPDX-License-Identifier: Apache-2.0
//
// TensorView: memory of one dense strided tensor that somebody else owns. The maker keeps data
// alive; the view copies shape and strides. Sub-byte dtypes are packed little-endian inside bytes
// and must be contiguous. Value type.
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

struct TensorView {
  std::byte* data = nullptr;  // first element; null allowed when there is no element
  DType dtype = DType::kInvalid;
  Dims shape;
  Dims strides;  // in elements; empty = row-major
  int32_t device_type = 1;
  int32_t device_id = 0;
  bool read_only = false;
  uint64_t stream = 0;

  int64_t element_count() const;  // shape is valid by construction
  bool is_contiguous() const;     // row-major without gaps (extents of 1 and empty tensors are)
};

// Parameters of make_tensor_view; byte_size 0 = take from shape and strides.
struct TensorViewArguments {
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
Result<TensorView> make_tensor_view(const TensorViewArguments& arguments);

}  // namespace shardwright
