// SPDX-License-Identifier: Apache-2.0
//
// What lies in a directory that Megatron-core's zarr backend wrote, by names and headers: arrays
// with the files of their chunks, and files of sharded objects. Locks that a save of flattened
// tensors leaves (empty files below KEY.sync) are nothing. Names come from the storage alone, which
// gives none that lead out of it and follows no links. Thread rule of the storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/zarr/array_header.h"

namespace shardwright::format::megatron {

inline constexpr size_t kMaxZarrFiles = size_t{16} << 20;

struct ZarrFile {
  std::string name;  // relative to the checkpoint
  uint64_t size_bytes = 0;
  std::string version;  // of the storage; empty = not known
};

struct ZarrArray {
  zarr::ArrayHeader header;
  struct Chunk {
    uint64_t number = 0;  // in its grid
    uint32_t file = 0;    // in ZarrFiles::files
  };
  std::vector<Chunk> chunks;  // those that have files, ascending
};

struct ZarrFiles {
  std::vector<ZarrFile> files;
  std::map<std::string, ZarrArray, std::less<>> arrays;  // by key
  std::vector<uint32_t> objects;                         // numbers of files
  std::vector<std::string> unknown;  // the first of the names that are none of these
  uint64_t unknown_count = 0;
  Digest128 digest{};  // of names, sizes and headers
};

// The failures of decode_header, naming the array; DATA_LOSS for chunks that lie outside of their
// array, have another size than it says, or have no array, and for objects outside of their grid;
// UNIMPLEMENTED for arrays of another version; RESOURCE_EXHAUSTED above most_files, locks included.
Result<ZarrFiles> find_zarr_files(const Location& location, size_t most_files = kMaxZarrFiles);

}  // namespace shardwright::format::megatron
