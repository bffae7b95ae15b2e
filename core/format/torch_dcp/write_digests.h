// SPDX-License-Identifier: Apache-2.0
//
// Digests of an index that somebody else has made of items that were written here. Thread rule of
// the storage.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/torch_dcp/rank_items.h"

namespace shardwright::format::torch_dcp {

// The items of one file.
struct WrittenFile {
  std::string name;  // in the directory, of the form __R_K.GENERATION.distcp
  WrittenItems written;
};
std::vector<std::byte> encode_written_file(const WrittenFile& file);
// DATA_LOSS for bytes that encode_written_file has not made.
Result<WrittenFile> decode_written_file(std::span<const std::byte> bytes);

// The sidecar of an index: what it names of these files has digests, all else has none.
// INVALID_ARGUMENT for files of several generations, or none; the failures of decode_index.
Result<std::vector<std::byte>> make_sidecar(std::span<const std::byte> index,
                                            std::span<const WrittenFile> files,
                                            int64_t created_unix_ns);
// Puts it beside the index, durable where that is wanted, in place of one that is there.
Status write_sidecar(const Location& location, std::string_view generation,
                     std::span<const std::byte> sidecar, bool durable);

}  // namespace shardwright::format::torch_dcp
