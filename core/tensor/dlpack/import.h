// SPDX-License-Identifier: Apache-2.0
//
// Takes tensors of other frameworks in through DLPack without copying. Thread rule: any thread may
// import; the producer's deleter runs on the thread that drops the last reference to the keepalive,
// so only host threads may do that (the deleter may need the GIL or an attached JVM).
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/result.h"
#include "core/tensor/dlpack/structs.h"
#include "core/tensor/tensor_view.h"

namespace shardwright::dlpack {

struct ImportOptions {
  bool load_target = false;  // memory will be written: refuse what the producer marked as read-only
  uint64_t stream = 0;  // producer's stream, passed on in the view; nothing is synchronised here
};

struct ImportedTensor {
  TensorView view;
  std::shared_ptr<void>
      keepalive;  // co-owned by all who use the view; the last one calls the deleter
};

// Consumes managed on success only: its deleter (NULL is fine) is called exactly once, when the
// keepalive goes. On failure the caller still owns it. UNIMPLEMENTED: major version other than 1
// (nothing but the version was read), opaque or unknown dtype, lanes != 1, unknown device, unknown
// flag, sub-byte elements padded to bytes or not contiguous. INVALID_ARGUMENT: NULL, a read-only
// load target, float6 or float4 with other bits, a wrong dimension count, negative or overflowing
// extents, negative strides, NULL data of a tensor with elements.
Result<ImportedTensor> import_versioned(DLManagedTensorVersioned* managed,
                                        const ImportOptions& options);
Result<ImportedTensor> import_legacy(DLManagedTensor* managed, const ImportOptions& options);

}  // namespace shardwright::dlpack
