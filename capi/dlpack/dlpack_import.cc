// SPDX-License-Identifier: Apache-2.0
//
// Numbers of devices are equal in DLPack and in shw_tensor; dtypes are looked up.
#include "capi/dlpack/dlpack_import.h"

#include <fmt/format.h>

#include "core/tensor/dtype.h"

namespace shardwright::capi {
namespace {

constexpr uint32_t kMajor = 1;
constexpr uint64_t kFlagReadOnly = 1;
constexpr uint64_t kFlagIsCopied = 2;
constexpr uint64_t kFlagSubbytePadded = 4;
constexpr uint64_t kKnownFlags = kFlagReadOnly | kFlagIsCopied | kFlagSubbytePadded;

Result<shw_tensor> describe(const DLTensor& from) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  if (from.device.device_type == 0) return unimplemented("DLPack device type 0 is unknown");
  SHW_ASSIGN_OR_RETURN(const DType dtype,
                       dtype_from_dlpack(from.dtype.code, from.dtype.bits, from.dtype.lanes));
  tensor.data = from.data;
  tensor.byte_offset = from.byte_offset;
  tensor.device_type = from.device.device_type;
  tensor.device_id = from.device.device_id;
  tensor.dtype = static_cast<int32_t>(dtype);
  tensor.ndim = from.ndim;
  tensor.shape = from.shape;
  tensor.strides = from.strides;
  return tensor;
}

}  // namespace

Result<shw_tensor> describe_dlpack(const DLManagedTensorVersioned* managed) {
  if (managed == nullptr) return invalid_argument("a DLPack tensor is NULL");
  if (managed->version.major != kMajor) {
    return unimplemented(fmt::format("DLPack version is {}.{}, this library reads {}.x",
                                     managed->version.major, managed->version.minor, kMajor))
        .with_detail("needed_version", std::to_string(managed->version.major));
  }
  // A flag may say that the memory is laid out otherwise, as kFlagSubbytePadded did when it came.
  if ((managed->flags & ~kKnownFlags) != 0) {
    return unimplemented(fmt::format("the DLPack tensor has the unknown flags {:#x}",
                                     managed->flags & ~kKnownFlags));
  }
  SHW_ASSIGN_OR_RETURN(shw_tensor tensor, describe(managed->dl_tensor));
  // What is written into a copy that was made for the exchange never reaches its owner.
  if ((managed->flags & (kFlagReadOnly | kFlagIsCopied)) != 0) tensor.flags |= SHW_TENSOR_READ_ONLY;
  if ((managed->flags & kFlagSubbytePadded) != 0) tensor.flags |= SHW_TENSOR_SUBBYTE_PADDED;
  return tensor;
}

Result<shw_tensor> describe_dlpack(const DLManagedTensor* managed) {
  if (managed == nullptr) return invalid_argument("a DLPack tensor is NULL");
  return describe(managed->dl_tensor);
}

}  // namespace shardwright::capi
