// SPDX-License-Identifier: Apache-2.0
//
// What the files of a directory of Megatron-core's zarr backend say together: a proved catalog, and
// where each chunk and object lies. A chunk whose elements are its file's, or the beginning of it,
// lies in the file; one at an edge with padding between its rows, one without a file (elements of
// fill_value) and objects, which become lists, are derived. Thread rule of the storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/format/derived_items.h"
#include "core/format/opened_checkpoint.h"
#include "core/plan/catalog.h"

namespace shardwright::format::megatron {

// Where chunks lie that have no file.
inline constexpr uint32_t kFillElements = 0xFFFFFFFF;
inline constexpr uint64_t kMaxFilledChunks = uint64_t{1} << 20;
// Bytes of elements that have no file: some, and so many for each byte that has one.
inline constexpr uint64_t kFreeFilledBytes = uint64_t{256} << 20;
inline constexpr uint64_t kFilledPerStoredByte = 64;

struct ZarrContents {
  plan::Catalog catalog;
  std::vector<FileInfo> files;
  std::vector<std::string> versions;  // of the files; empty = not known
  std::vector<Extent> chunks;
  std::vector<uint32_t> chunk_files;
  std::vector<Extent> objects;
  std::vector<uint32_t> object_files;
  DerivedItems derived;
  std::vector<std::byte> fills;  // the elements that kFillElements stands for
  std::vector<std::string> notes;
  Digest128 digest{};
};

// The failures of find_zarr_files and listed_archive; DATA_LOSS naming a chunk that has no file and
// whose array has no fill_value, and objects of one name; RESOURCE_EXHAUSTED above the limits.
Result<ZarrContents> read_zarr_contents(const Location& location);

}  // namespace shardwright::format::megatron
