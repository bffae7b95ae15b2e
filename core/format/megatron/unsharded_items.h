// SPDX-License-Identifier: Apache-2.0
//
// What ranks wrote of the common state, taken out of what the index will name. Ranks store its
// entries as any others; the coordinator reads them once more when all are there, and they become
// one value (unsharded_state.h). Thread rule of the storage.
#pragma once

#include <vector>

#include "core/base/result.h"
#include "core/format/megatron/unsharded_state.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/torch_dcp/dcp_generation.h"
#include "core/plan/catalog.h"

namespace shardwright::format::megatron {

// INVALID_ARGUMENT naming an entry of the common state that only one rank has, or that is cut into
// chunks; and where there is the object of another common state beside them.
Status check_common(const plan::Catalog& catalog);
// Whether the state has the object of a common state by itself.
bool has_common_object(const plan::Catalog& catalog);

// Reads the entries and takes them out of parts. RESOURCE_EXHAUSTED above kMaxCommonBytes; failures
// of the storage.
Result<std::vector<CommonEntry>> take_common(const Location& location,
                                             torch_dcp::IndexParts* parts);

// The file that an object of a common state is all of.
struct CommonFile {
  std::string name;
  bool digests = true;
};
// Puts the object into parts, which have no common state any more.
Status add_common_object(std::span<const std::byte> archive, const CommonFile& file,
                         torch_dcp::IndexParts* parts);

}  // namespace shardwright::format::megatron
