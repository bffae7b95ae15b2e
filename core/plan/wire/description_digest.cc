// SPDX-License-Identifier: Apache-2.0
//
// What ranks describe in 16 bytes.
#include "core/plan/digest.h"
#include "core/plan/rank_plans.h"
#include "core/plan/wire/plan_encoder.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {

Result<Digest128> description_digest(const LocalSavePlan& plan) {
  LocalSavePlan bare = plan;
  bare.tensor_digests.clear();
  bare.object_digests.clear();
  PlanEncoder encoder;
  SHW_ASSIGN_OR_RETURN(const auto bytes, encoder.encode(bare));
  return content_digest(bytes);
}

Result<Digest128> items_digest(const LocalSymbolicPlan& plan) {
  SymbolicDescription bare = plan.description;
  bare.tensor_digests.clear();
  bare.object_digests.clear();
  SHW_ASSIGN_OR_RETURN(const Digest128 digest, symbolic_digest(bare));
  return local_digest(digest, view_of(plan.part), {plan.part.rank, plan.part.world_size});
}

Result<Digest128> symbolic_digest(const SymbolicDescription& description) {
  SHW_ASSIGN_OR_RETURN(const Bytes bytes, encode(description));
  return content_digest(bytes);
}

}  // namespace shardwright::plan
