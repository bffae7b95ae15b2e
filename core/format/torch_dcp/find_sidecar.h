// SPDX-License-Identifier: Apache-2.0
//
// Finds the digests of an index among the files beside it. Thread rule of the storage.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/torch_dcp/digest_sidecar.h"

namespace shardwright::format::torch_dcp {

struct FoundSidecar {
  SidecarHeader header;
  std::string key;  // in the storage
};
// The one that was made for exactly these bytes of an index, by its header alone; nullopt when
// there is none. notes, or null: one sentence when only others or damaged ones are there. Failures
// of the storage: what cannot be read may be the one, and without it nothing would be compared.
Result<std::optional<FoundSidecar>> find_sidecar(const Location& location,
                                                 std::span<const std::byte> index,
                                                 std::vector<std::string>* notes);

}  // namespace shardwright::format::torch_dcp
