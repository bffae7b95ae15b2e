// SPDX-License-Identifier: Apache-2.0
//
// A call on several ranks whose arguments are wrong on this one: the others are told, so that they
// fail at once instead of waiting for this rank. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/context/context.h"
#include "core/base/result.h"
#include "core/collective/collective.h"

namespace shardwright::capi {

struct DeclinedCall {
  std::shared_ptr<Context> context;
  std::shared_ptr<collective::Collective> collective;
  Status (*decline)(collective::Collective&, const Status& failure, int64_t deadline_ns);
};

// Returns `failure`. An asynchronous call tells the others in its turn among the jobs, in the
// background.
Status decline(const DeclinedCall& call, const Status& failure, bool asynchronous);

}  // namespace shardwright::capi
