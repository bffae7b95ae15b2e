// SPDX-License-Identifier: Apache-2.0
//
// Owned tensors as DLPack: each export holds a reference on the memory; its deleter may run on any
// thread and takes no lock.
#pragma once

#include <memory>

#include "capi/boundary/handles.h"
#include "capi/dlpack/dlpack_structs.h"

namespace shardwright::capi {

DLManagedTensorVersioned* export_dlpack(std::shared_ptr<OwnedTensorImpl> tensor);
DLManagedTensor* export_dlpack_legacy(std::shared_ptr<OwnedTensorImpl> tensor);

}  // namespace shardwright::capi
