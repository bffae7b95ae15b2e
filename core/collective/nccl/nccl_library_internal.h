// SPDX-License-Identifier: Apache-2.0
//
// NCCL, opened when it is needed: the functions of it that are called, and its failures as
// statuses. Where the process has loaded a library of that name before, as torch does, it is that
// one; once opened, it stays. Immutable, any thread.
#pragma once

#include <nccl.h>

#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shardwright::collective::internal {

struct NcclFunctions {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclAlltoAll) all_to_all = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclRedOpCreatePreMulSum) create_scaled_sum = nullptr;
  decltype(&ncclRedOpDestroy) destroy_reduction = nullptr;
};

class NcclLibrary {
 public:
  // name: that of a library, found where the loader looks, or a path. UNAVAILABLE naming it and
  // what to do where it cannot be opened or lacks a function.
  static Result<std::shared_ptr<const NcclLibrary>> open(const std::string& name);

  const NcclFunctions& functions() const { return functions_; }
  // OK for success and for what is under way. communicator: whose failure it is, or null.
  Status status_of(ncclResult_t result, ncclComm_t communicator, std::string_view doing) const;

 private:
  NcclFunctions functions_;
};

}  // namespace shardwright::collective::internal
