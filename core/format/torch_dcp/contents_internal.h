// SPDX-License-Identifier: Apache-2.0
//
// What an opened index holds beside its places: a proved catalog, and for each of its chunks the
// number of its place. Value type.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/torch_dcp/byte_items.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/plan/catalog.h"

namespace shardwright::format::torch_dcp::internal {

// What opening reads of storage; another rank opens the same checkpoint by it.
struct Opened {
  struct IndexFile {
    std::string key;
    std::vector<std::byte> bytes;
  };
  std::vector<IndexFile> indexes;    // .metadata, or those of ranks in their order
  std::vector<uint64_t> file_bytes;  // of the files that the indexes name; kMissing = none there
  std::vector<ByteObject> objects;   // in the order of the merged index
  std::vector<std::byte> sidecar;  // digests of the index (digest_sidecar.h); none = there are none

  static constexpr uint64_t kMissing = UINT64_MAX;
};

std::vector<std::byte> encode_opened(const Opened& opened);
// DATA_LOSS for bytes that no rank made.
Result<Opened> decode_opened(std::span<const std::byte> bytes);

// The indexes of what was opened, as one.
Result<DcpIndex> index_of(const Opened& opened);

struct Contents {
  plan::Catalog catalog;
  std::vector<FileInfo> files;
  std::vector<ItemPlace> chunks;   // by chunk of the catalog
  std::vector<uint64_t> numbers;   // by chunk of the catalog: its number in the index
  std::vector<ItemPlace> objects;  // by object of the catalog
  std::vector<std::string> transforms;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> notes;
  int32_t world_size = 1;
};

// DATA_LOSS for tensors that overlap, have holes, or items without a place.
Result<Contents> contents_of(DcpIndex index, const Opened& opened);

std::shared_ptr<const OpenedCheckpoint> make_checkpoint(const Location& location,
                                                        const Opened& opened, Contents contents);
// What it takes in memory, about.
uint64_t held_bytes(const Opened& opened, const Contents& contents);

}  // namespace shardwright::format::torch_dcp::internal
