// SPDX-License-Identifier: Apache-2.0
//
// A call on several ranks whose arguments are wrong on this one: the others are told, so that they
// fail at once instead of waiting for this rank. Any thread.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/boundary/collective_argument.h"
#include "capi/boundary/handles.h"
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

// The arguments of a save or load, converted: first context and collective, then all others by
// read_rest(given, asynchronous, &call). When those are wrong, the other ranks are told.
template <typename Call, typename Arguments, typename ReadRest>
Result<Call> read_or_decline(const Arguments& given, bool asynchronous,
                             decltype(DeclinedCall::decline) tell, const ReadRest& read_rest) {
  Call call;
  SHW_ASSIGN_OR_RETURN(call.runtime.context, need(given.context, "context"));
  SHW_ASSIGN_OR_RETURN(call.collective, read_collective(given.collective));
  Status rest = read_rest(given, asynchronous, &call);
  if (rest.ok()) return call;
  return decline(DeclinedCall{call.runtime.context, call.collective, tell}, rest, asynchronous);
}

}  // namespace shardwright::capi
