// SPDX-License-Identifier: Apache-2.0
//
// FileItems: which chunks and objects of a manifest lie in which file, in the order of the catalog,
// which is the order of the file's index. Items below the number of chunks are chunks, those above
// are objects. Immutable, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/format/native/manifest.h"
#include "core/plan/catalog.h"

namespace shardwright::format::native::internal {

class FileItems {
 public:
  FileItems() = default;
  // DATA_LOSS naming what cannot be: a file that is too short for its index, an item of a rank
  // without a file.
  static Result<FileItems> create(const plan::Catalog& catalog,
                                  std::span<const ManifestFile> files);

  std::span<const uint32_t> of(uint32_t file) const {
    return std::span(items_).subspan(begins_[file], begins_[file + 1] - begins_[file]);
  }
  uint32_t file(size_t item) const { return files_[item]; }
  // Place of an item among those of its file.
  uint32_t slot(size_t item) const { return slots_[item]; }

 private:
  std::vector<size_t> begins_;
  std::vector<uint32_t> items_;
  std::vector<uint32_t> files_;  // per item
  std::vector<uint32_t> slots_;  // per item
};

// "tensor 'w' [0:4, 0:8]" or "object 'step'".
std::string item_text(const plan::Catalog& catalog, size_t item);

}  // namespace shardwright::format::native::internal
