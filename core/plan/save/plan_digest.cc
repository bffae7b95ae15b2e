// SPDX-License-Identifier: Apache-2.0
//
// What a local plan says, without what changes from save to save.
#include "core/plan/digest_internal.h"
#include "core/plan/save/save_plan.h"
#include "core/plan/wire/plan_encoder.h"

namespace shardwright::plan {

Result<Digest128> description_digest(const LocalSavePlan& plan) {
  LocalSavePlan bare = plan;
  bare.tensor_digests.clear();
  bare.object_digests.clear();
  PlanEncoder encoder;
  SHW_ASSIGN_OR_RETURN(const auto bytes, encoder.encode(bare));
  return internal::plan_bytes_digest(bytes);
}

Digest128 content_digest(std::span<const std::byte> bytes) {
  return internal::plan_bytes_digest(bytes);
}

}  // namespace shardwright::plan
