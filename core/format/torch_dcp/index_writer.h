// SPDX-License-Identifier: Apache-2.0
//
// Writes .metadata as torch.distributed.checkpoint 2.4 to 2.15 reads it: a pickle of protocol 4, in
// one pass over the catalog. Hints are the numbers of chunks; texts, sizes and classes stand once.
// Pure, any thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/plan/catalog.h"

namespace shardwright::format::torch_dcp {

// All outlive the call.
struct IndexContents {
  const plan::Catalog& catalog;
  std::span<const ItemPlace> chunks;   // by chunk of the catalog
  std::span<const ItemPlace> objects;  // by object of it
  std::span<const std::string> files;
  std::string_view checkpoint_id;
  std::string_view save_id;
  const std::map<std::string, std::string>& metadata;
};

struct EncodedIndex {
  std::string bytes;
  std::vector<std::string> notes;  // what of the paths torch's index says in another way
};

// What encode_index would refuse, before anything has a place: UNIMPLEMENTED for dtypes that torch
// has not; INVALID_ARGUMENT when the key of a rank_local entry is that of another one.
Status check_indexable(const plan::Catalog& catalog);
// Chunks without elements have no place and are left out.
Result<EncodedIndex> encode_index(const IndexContents& contents);

}  // namespace shardwright::format::torch_dcp
