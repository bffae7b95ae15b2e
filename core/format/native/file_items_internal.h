// SPDX-License-Identifier: Apache-2.0
//
// FileItems: which chunks and objects of a manifest lie in which file, in the order of the catalog,
// which is the order of the file's index. Items below the number of chunks are chunks, those above
// are objects. What it keeps grows with the distinct rank maps, the boxes and the objects, not with
// the chunks of grids. Immutable, any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/format/native/manifest.h"
#include "core/plan/catalog.h"

namespace shardwright::format::native::internal {

class FileItems {
 public:
  FileItems() = default;
  // DATA_LOSS naming what cannot be: a file that is too short for its index, an item of a rank
  // without a file, more chunks than all indexes have room for.
  static Result<FileItems> create(const plan::Catalog& catalog,
                                  std::span<const ManifestFile> files);

  // Of the catalog that this was made of. O(tensors and what the file has).
  std::vector<uint64_t> of(const plan::Catalog& catalog, uint32_t file) const;
  uint32_t file(const plan::Catalog& catalog, uint64_t item) const;

 private:
  // An item by its file.
  struct Stored {
    uint32_t file = 0;
    uint64_t item = 0;  // chunk of a rank map; chunk or object of the catalog
    friend auto operator<=>(const Stored&, const Stored&) = default;
  };
  using List = std::vector<Stored>;  // ascending

  static std::span<const Stored> in_file(const List& list, uint32_t file);
  // False when the rank has no file.
  bool add(uint32_t rank, uint64_t item, List* list) const;
  Status add_rank_map(const plan::Catalog& catalog, size_t number);
  Status add_boxes(const plan::Catalog& catalog);
  Status add_objects(const plan::Catalog& catalog);

  std::vector<uint32_t> ranks_;  // of the files, ascending
  std::vector<List> rank_maps_;  // of each rank map
  List boxes_;
  List objects_;
};

// "tensor 'w' [0:4, 0:8]" or "object 'step'".
std::string item_text(const plan::Catalog& catalog, uint64_t item);

}  // namespace shardwright::format::native::internal
