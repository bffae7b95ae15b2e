// SPDX-License-Identifier: Apache-2.0
//
// Gives tensors of ours to other frameworks through DLPack without copying. The exported struct
// holds a reference on the owner of the memory; its deleter drops that, frees the struct, takes no
// lock of a host and may run on any thread. Pure apart from the reference, any thread.
#pragma once

#include <memory>

#include "core/base/result.h"
#include "core/tensor/dlpack/structs.h"
#include "core/tensor/tensor_view.h"

namespace shardwright::dlpack {

// A struct that the receiver releases through its deleter, once. Strides are always given.
// Read-only views carry the read-only flag.
Result<DLManagedTensorVersioned*> export_versioned(const TensorView& view,
                                                   std::shared_ptr<void> owner);
// The same in the unversioned struct, for consumers that know nothing newer. INVALID_ARGUMENT for a
// read-only view, which that struct cannot express.
Result<DLManagedTensor*> export_legacy(const TensorView& view, std::shared_ptr<void> owner);

}  // namespace shardwright::dlpack
