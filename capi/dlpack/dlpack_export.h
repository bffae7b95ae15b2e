// SPDX-License-Identifier: Apache-2.0
//
// Memory of the library as DLPack: each export holds a reference on what keeps the memory,
// shape and strides; its deleter may run on any thread and takes no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "capi/boundary/handles.h"
#include "capi/dlpack/dlpack_structs.h"
#include "core/device/lane_device.h"
#include "core/tensor/dtype.h"

namespace shardwright::capi {

// A strided tensor in memory of a device; all of it lives as long as its owner.
struct ExportedTensor {
  std::byte* data = nullptr;
  DType dtype = DType::kInvalid;
  std::span<const int64_t> shape;
  std::span<const int64_t> strides;
  device::DeviceNumber place{};
};

DLManagedTensorVersioned* export_dlpack(const ExportedTensor& tensor,
                                        std::shared_ptr<const void> owner);
DLManagedTensor* export_dlpack_legacy(const ExportedTensor& tensor,
                                      std::shared_ptr<const void> owner);

// What an owned tensor exports.
ExportedTensor exported(const OwnedTensorImpl& tensor);

}  // namespace shardwright::capi
