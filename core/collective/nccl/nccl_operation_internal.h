// SPDX-License-Identifier: Apache-2.0
//
// One operation of a communicator as calls of NCCL. Used by the thread that issues.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstdint>

#include "core/base/status.h"
#include "core/collective/nccl/nccl_library_internal.h"
#include "core/collective/tensor_operation.h"

namespace shardwright::collective::internal {

// Where an operation is put.
struct NcclPlace {
  const NcclLibrary& nccl;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  int32_t* barrier_cell = nullptr;  // one number in the memory of the device
};

// A reduction as NCCL knows it. One that was made for a scale is given back when its operation has
// been put on the stream; the communicator's end ends it, too.
class NcclReduction {
 public:
  // UNIMPLEMENTED naming the dtype where NCCL does not reduce its elements.
  Status make(const NcclPlace& place, const CommunicatorCall& call);
  void give_back(const NcclPlace& place);

  ncclDataType_t dtype() const { return dtype_; }
  ncclRedOp_t operation() const { return operation_; }

 private:
  ncclDataType_t dtype_ = ncclFloat32;
  ncclRedOp_t operation_ = ncclSum;
  bool is_own_ = false;
};

// True for what takes a reduction.
bool reduces(OperationKind kind);
// Puts the operation on the stream; part_bytes is what check_operation gave. Elements that are only
// moved go as bytes. OK also for what NCCL goes on with by itself.
Status launch(const NcclPlace& place, const TensorOperation& own, uint64_t part_bytes,
              const NcclReduction& reduction);

}  // namespace shardwright::collective::internal
