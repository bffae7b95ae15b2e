// SPDX-License-Identifier: Apache-2.0
//
// Which tensors go into which file of a safetensors checkpoint, and where: the headers. Files are
// filled in the order of the catalog; inside a file tensors stand as the package of the format
// writes them, by dtype and then by name, so that each begins at a multiple of its element. Pure
// functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/plan/catalog.h"

namespace shardwright::format::safetensors {

inline constexpr uint64_t kDefaultShardBytes = 5'000'000'000;

struct PlannedFile {
  std::string head;  // length and header, padded
  std::vector<uint32_t> tensors;
  uint64_t buffer_bytes = 0;

  uint64_t size_bytes() const { return head.size() + buffer_bytes; }
};

struct FileMetadata {
  std::map<std::string, std::string> of_all;    // stands in every file
  std::map<std::string, std::string> of_first;  // beside it, in the first
};

// A file is full when the next tensor would take its buffer above max_file_bytes; a larger tensor
// has a file for itself. At least one file. INVALID_ARGUMENT or UNIMPLEMENTED naming a tensor that
// the format cannot hold, RESOURCE_EXHAUSTED for a header above 100 MB.
Result<std::vector<PlannedFile>> plan_files(const plan::Catalog& catalog,
                                            const FileMetadata& metadata, uint64_t max_file_bytes);

// Text of the index of a directory: names[i] is that of files[i].
std::string encode_index(const plan::Catalog& catalog, const std::vector<PlannedFile>& files,
                         const std::vector<std::string>& names);

}  // namespace shardwright::format::safetensors
