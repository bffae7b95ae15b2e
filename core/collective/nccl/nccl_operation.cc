// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <fmt/format.h>

#include "core/collective/nccl/nccl_operation_internal.h"
#include "core/tensor/number_codes.h"

namespace shardwright::collective::internal {
namespace {

using shardwright::internal::Bfloat16Number;
using shardwright::internal::Float16Number;

// False where NCCL reduces none of them. A flat table.
bool find_dtype(DType dtype, ncclDataType_t* out) {
  switch (dtype) {
    case DType::kFloat16:
      *out = ncclFloat16;
      return true;
    case DType::kBfloat16:
      *out = ncclBfloat16;
      return true;
    case DType::kFloat32:
      *out = ncclFloat32;
      return true;
    case DType::kFloat64:
      *out = ncclFloat64;
      return true;
    case DType::kInt8:
      *out = ncclInt8;
      return true;
    case DType::kUint8:
      *out = ncclUint8;
      return true;
    case DType::kInt32:
      *out = ncclInt32;
      return true;
    case DType::kUint32:
      *out = ncclUint32;
      return true;
    case DType::kInt64:
      *out = ncclInt64;
      return true;
    case DType::kUint64:
      *out = ncclUint64;
      return true;
    default:
      return false;
  }
}

ncclRedOp_t operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kAverage:
      return ncclAvg;
    case Reduction::kMax:
      return ncclMax;
    case Reduction::kMin:
      return ncclMin;
    default:
      return ncclSum;
  }
}

// The scale as one element, which is how NCCL takes it.
struct ScaleElement {
  ScaleElement(DType dtype, double scale) {
    const auto narrow = static_cast<float>(scale);
    const uint16_t half =
        dtype == DType::kFloat16 ? Float16Number::encode(narrow) : Bfloat16Number::encode(narrow);
    if (dtype == DType::kFloat64) {
      std::memcpy(bytes, &scale, sizeof scale);
    } else if (dtype == DType::kFloat32) {
      std::memcpy(bytes, &narrow, sizeof narrow);
    } else {
      std::memcpy(bytes, &half, sizeof half);
    }
  }
  alignas(8) unsigned char bytes[8] = {};
};

}  // namespace

Status NcclReduction::make(const NcclPlace& place, const CommunicatorCall& call) {
  if (!find_dtype(call.dtype, &dtype_))
    return unimplemented(
        fmt::format("NCCL does not reduce elements of {}", dtype_name(call.dtype)));
  operation_ = operation_of(call.reduction);
  if (call.reduction != Reduction::kScaledSum) return {};
  // check_operation has left floats only.
  ScaleElement scale(call.dtype, call.scale);
  SHW_RETURN_IF_ERROR(place.nccl.status_of(
      place.nccl.functions().create_scaled_sum(&operation_, scale.bytes, dtype_,
                                               ncclScalarHostImmediate, place.communicator),
      place.communicator, "making a scaled sum"));
  is_own_ = true;
  return {};
}

void NcclReduction::give_back(const NcclPlace& place) {
  // What fails here fails with the next operation.
  if (is_own_)
    static_cast<void>(place.nccl.functions().destroy_reduction(operation_, place.communicator));
  is_own_ = false;
}

bool reduces(OperationKind kind) {
  return kind == OperationKind::kReduceScatter || kind == OperationKind::kAllReduce;
}

Status launch(const NcclPlace& place, const TensorOperation& own, uint64_t part_bytes,
              const NcclReduction& reduction) {
  const NcclFunctions& nccl = place.nccl.functions();
  const ncclComm_t to = place.communicator;
  const cudaStream_t stream = place.stream;
  const void* const in = own.in.data();
  void* const out = own.out.data();
  const auto call = [&] {
    switch (own.kind) {
      case OperationKind::kAllGather:
        return nccl.all_gather(in, out, part_bytes, ncclUint8, to, stream);
      case OperationKind::kAllToAll:
        return nccl.all_to_all(in, out, part_bytes, ncclUint8, to, stream);
      case OperationKind::kReduceScatter:
        return nccl.reduce_scatter(in, out, own.call.count, reduction.dtype(),
                                   reduction.operation(), to, stream);
      case OperationKind::kAllReduce:
        return nccl.all_reduce(out, out, own.call.count, reduction.dtype(), reduction.operation(),
                               to, stream);
      case OperationKind::kBroadcast:
        return nccl.broadcast(out, out, part_bytes, ncclUint8, own.root, to, stream);
      case OperationKind::kBarrier:
        return nccl.all_reduce(place.barrier_cell, place.barrier_cell, 1, ncclInt32, ncclSum, to,
                               stream);
    }
    return ncclInvalidArgument;
  };
  return place.nccl.status_of(call(), to, operation_title(own));
}

}  // namespace shardwright::collective::internal
