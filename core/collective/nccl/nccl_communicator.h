// SPDX-License-Identifier: Apache-2.0
//
// The communicator over NCCL: memory of one GPU per rank, one rank per GPU. Operations run on a
// stream of the communicator, after what is on the stream that a call names. Sums are those of
// NCCL: their order is its own, and those of float16 and bfloat16 round at each step on the way.
// NCCL connects ranks when they first need it: such an operation waits for the others where it is
// issued. It does not compare what ranks issue: those out of step move wrong bytes or wait until
// their time is over. A rank that ends the communicator is seen by the others when NCCL sees it.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/result.h"
#include "core/collective/communicator.h"
#include "core/collective/nccl/nccl_id.h"

namespace shardwright::collective {

inline constexpr const char* kNcclLibrary = "libnccl.so.2";

struct NcclRequest {
  NcclId id{};
  int32_t rank = 0;
  int32_t size = 1;
  int32_t device = 0;                  // among those that the process sees
  std::string library = kNcclLibrary;  // where the loader looks, or a path
  int64_t timeout_ns =
      int64_t{1800} * 1'000'000'000;  // until all ranks have come; negative = no limit
};

// Waits for all ranks. UNAVAILABLE naming what is missing without a driver, a GPU or NCCL;
// INVALID_ARGUMENT for a device or rank that does not exist; DEADLINE_EXCEEDED.
Result<CommunicatorPtr> make_nccl_communicator(const NcclRequest& request);

}  // namespace shardwright::collective
