// SPDX-License-Identifier: Apache-2.0
//
// What ranks describe in 16 bytes.
#include "core/plan/digest.h"
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

Result<Digest128> symbolic_digest(const SymbolicDescription& description) {
  SHW_ASSIGN_OR_RETURN(const Bytes bytes, encode(description));
  return content_digest(bytes);
}

}  // namespace shardwright::plan
