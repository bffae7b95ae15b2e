// SPDX-License-Identifier: Apache-2.0
//
// CatalogView: the columns of a catalog wherever they lie, in a Catalog or in a plan buffer. The
// planner reads views, so that the plans of many ranks are never copied. They are what ranks
// describe: boxes, no grids. The members have the names of those of Catalog, and code that only reads
// works on both. Valid as long as what it points to.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/plan/catalog.h"

namespace shardwright::plan {

// Texts in one blob, as in TextColumn.
class TextView {
 public:
  TextView() = default;
  TextView(const TextColumn& column)
      : blob_(column.blob()), ends_(column.ends()) {}  // NOLINT: on purpose
  TextView(std::span<const char> blob, std::span<const uint64_t> ends) : blob_(blob), ends_(ends) {}
  std::string_view at(TextId id) const {
    const uint64_t begin = id == 0 ? 0 : ends_[id - 1];
    return {blob_.data() + begin, ends_[id] - begin};
  }
  size_t size() const { return ends_.size(); }
  std::span<const char> blob() const { return blob_; }
  std::span<const uint64_t> ends() const { return ends_; }

 private:
  std::span<const char> blob_;
  std::span<const uint64_t> ends_;
};

struct CatalogView {
  TextView texts;
  std::span<const int64_t> shapes;
  std::span<const TensorRecord> tensors;
  std::span<const ChunkRecord> boxes;
  std::span<const ExtentPair> more;
  std::span<const ObjectRecord> objects;

  std::string_view tensor_name(size_t tensor) const { return texts.at(tensors[tensor].name); }
  std::string_view object_name(size_t object) const { return texts.at(objects[object].name); }
  std::span<const int64_t> shape(size_t tensor) const {
    return shapes.subspan(tensors[tensor].shape_begin, tensors[tensor].dimension_count);
  }
};

// Of a catalog without grids.
inline CatalogView view_of(const Catalog& catalog) {
  return {catalog.texts, catalog.shapes, catalog.tensors,
          catalog.boxes, catalog.more,   catalog.objects};
}

// The chunk's box with all dimensions.
Box chunk_box_of(const CatalogView& catalog, size_t chunk);
// Bytes of the whole tensor.
uint64_t tensor_bytes_of(const CatalogView& catalog, size_t tensor);

// check_catalog for columns of any place in which objects may be those of others' files, with up to
// kMaxDescribedObjectBytes. What the first three columns and `tensors` say was proved
// before when table_is_known: then only chunks, further pairs and objects are looked at, and whether
// an object has the name of a tensor is left to the merge.
std::vector<std::string> view_findings(const CatalogView& catalog, size_t limit,
                                       bool table_is_known);

}  // namespace shardwright::plan
