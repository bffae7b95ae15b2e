// SPDX-License-Identifier: Apache-2.0
//
// Codes of devices and dtypes are equal in DLPack and in shw_tensor, so a description is a copy.
#include "capi/dlpack/dlpack_import.h"

#include <fmt/format.h>

namespace shardwright::capi {
namespace {

constexpr uint32_t kMajor = 1;
constexpr uint64_t kFlagReadOnly = 1;
constexpr uint64_t kFlagIsCopied = 2;
constexpr uint64_t kFlagSubbytePadded = 4;
constexpr uint64_t kKnownFlags = kFlagReadOnly | kFlagIsCopied | kFlagSubbytePadded;

shw_tensor describe(const DLTensor& from) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = from.data;
  tensor.byte_offset = from.byte_offset;
  tensor.device_type = from.device.device_type;
  tensor.device_id = from.device.device_id;
  tensor.dtype_code = from.dtype.code;
  tensor.dtype_bits = from.dtype.bits;
  tensor.dtype_lanes = from.dtype.lanes;
  tensor.ndim = from.ndim;
  tensor.shape = from.shape;
  tensor.strides = from.strides;
  return tensor;
}

Status check_type(const DLTensor& tensor) {
  if (tensor.dtype.lanes != 1) {
    return unimplemented(fmt::format("DLPack dtype has {} lanes, expected 1", tensor.dtype.lanes));
  }
  if (tensor.device.device_type == 0) return unimplemented("DLPack device type 0 is unknown");
  return {};
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
  SHW_RETURN_IF_ERROR(check_type(managed->dl_tensor));
  shw_tensor tensor = describe(managed->dl_tensor);
  // What is written into a copy that was made for the exchange never reaches its owner.
  if ((managed->flags & (kFlagReadOnly | kFlagIsCopied)) != 0) tensor.flags |= SHW_TENSOR_READ_ONLY;
  if ((managed->flags & kFlagSubbytePadded) != 0) tensor.flags |= SHW_TENSOR_SUBBYTE_PADDED;
  return tensor;
}

Result<shw_tensor> describe_dlpack(const DLManagedTensor* managed) {
  if (managed == nullptr) return invalid_argument("a DLPack tensor is NULL");
  SHW_RETURN_IF_ERROR(check_type(managed->dl_tensor));
  return describe(managed->dl_tensor);
}

}  // namespace shardwright::capi
