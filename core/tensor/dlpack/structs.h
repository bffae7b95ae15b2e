// SPDX-License-Identifier: Apache-2.0
//
// Our own declarations of the structs of the DLPack C ABI, major version 1, and of its older
// unversioned struct. The two managed structs carry DLPack's names at global scope, because the
// public C headers declare them by name; the rest is ours. Everything up to `flags` stays in place
// in every version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardwright::dlpack {

struct Device {
  int32_t type = 0;
  int32_t id = 0;
};

struct DataType {
  uint8_t code = 0;
  uint8_t bits = 0;
  uint16_t lanes = 0;
};

struct Tensor {
  void* data = nullptr;
  Device device;
  int32_t ndim = 0;
  DataType dtype;
  int64_t* shape = nullptr;
  int64_t* strides = nullptr;  // in elements; NULL = row-major
  uint64_t byte_offset = 0;
};

struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
};

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 1;  // has all flags and dtypes that are exported

inline constexpr uint64_t kFlagReadOnly = 1;
inline constexpr uint64_t kFlagIsCopied = 2;
inline constexpr uint64_t kFlagSubbytePadded = 4;  // each sub-byte element fills a byte of its own

}  // namespace shardwright::dlpack

struct DLManagedTensor {
  shardwright::dlpack::Tensor dl_tensor;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensor* self) = nullptr;  // NULL = nothing to release
};

struct DLManagedTensorVersioned {
  shardwright::dlpack::Version version;
  void* manager_ctx = nullptr;
  void (*deleter)(DLManagedTensorVersioned* self) = nullptr;  // NULL = nothing to release
  uint64_t flags = 0;
  shardwright::dlpack::Tensor dl_tensor;
};

static_assert(sizeof(shardwright::dlpack::Tensor) == 48);
static_assert(offsetof(shardwright::dlpack::Tensor, shape) == 24);
static_assert(sizeof(DLManagedTensor) == 64);
static_assert(offsetof(DLManagedTensorVersioned, flags) == 24);
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
static_assert(sizeof(DLManagedTensorVersioned) == 80);
