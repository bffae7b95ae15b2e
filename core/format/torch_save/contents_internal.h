// SPDX-License-Identifier: Apache-2.0
//
// What a file of torch.save says as a checkpoint: a proved catalog, and where each tensor and
// object lies, in the file or among what is derived from it. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/derived_items.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/torch_save/stored_value.h"
#include "core/plan/catalog.h"

namespace shardwright::format::torch_save::internal {

inline constexpr uint32_t kTheFile = 0;
inline constexpr uint32_t kDerived = 1;  // behind the only file

struct Contents {
  plan::Catalog catalog;
  std::vector<Extent> chunks;
  std::vector<uint32_t> checksums;  // of chunks that are all of a record; 0 = none
  std::vector<Extent> objects;
  DerivedItems derived;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> notes;
};

// DATA_LOSS for a storage that is not there or has another size; RESOURCE_EXHAUSTED when views of
// a small file come to too many bytes; UNIMPLEMENTED when two entries have one name.
Result<Contents> contents_of(const StoredValue& stored);

}  // namespace shardwright::format::torch_save::internal
