// SPDX-License-Identifier: Apache-2.0
//
// The items of one rank in its file: where each goes, and what of it the index and the digests must
// know, which only the rank does. An item of a tensor begins at a multiple of 64 bytes; payloads
// from 64 KiB on begin at multiples of 4 KiB of the file. Gaps between items are zero.
//
//   details = count (8 bytes), {offset, size, payload offset, payload size: 8 bytes each}...,
//             count of digests (8 bytes), digests of blocks in the order of the items
//
// Little-endian. Pure, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/format/saving.h"
#include "core/format/torch_dcp/item_archive.h"

namespace shardwright::format::torch_dcp {

// An item as it was written.
struct WrittenItem {
  uint64_t offset = 0;  // in its file
  uint64_t size_bytes = 0;
  uint64_t payload_offset = 0;  // in the item
  uint64_t payload_bytes = 0;   // whose digests are kept: elements of a tensor, all of an object
};

struct WrittenItems {
  std::vector<WrittenItem> items;  // in the order of the write list
  std::vector<Digest128> digests;  // of the blocks of all payloads; empty = none were made
};

// Where the items of the list go. INVALID_ARGUMENT or UNIMPLEMENTED naming what has no form in this
// format.
Result<FileLayout> lay_out_items(const RankContents& contents, Framing framing);
// digests: as BlockFiller gives them for the list.
WrittenItems written_items(const RankContents& contents, const FileLayout& layout,
                           std::span<const Digest128> digests);

// What the digest of a byte object's blocks is bound to: the item as it is stored.
Digest128 object_item_key(std::string_view generation, std::string_view name, int32_t rank);

// Of all blocks of an item that lies in memory.
void append_item_digests(std::span<const std::byte> item, const Digest128& key,
                         std::vector<Digest128>* digests);

std::vector<std::byte> encode_details(const WrittenItems& items);
// DATA_LOSS for bytes that no rank made.
Result<WrittenItems> decode_details(std::span<const std::byte> bytes);

}  // namespace shardwright::format::torch_dcp
