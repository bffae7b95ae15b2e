// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint views: other entries over the bytes of an open checkpoint. A tensor of a view is made
// of boxes, each of which lies in a box of a stored tensor, in a run of one of one dimension, or is
// zeros; or it is a run of a stored object. A tensor of one dimension may also have the elements of
// boxes one after the other. An object is a stored one or has bytes of its own. Reads go to what is
// stored and are verified there. Immutable, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/checkpoint.h"

namespace shardwright::exec {

// Part of a tensor of a view.
struct ViewPiece {
  Box box;            // in the tensor of the view
  size_t tensor = 0;  // of the source, or kZeros
  // Where it lies there: a box of equal sizes begins at `offsets`, or, where the source has one
  // dimension and the view more, the box's row-major elements begin at offsets[0].
  Dims offsets = {};
  // Of the box there, where it has others: dimensions of 1 come or go; in a view of one dimension
  // it has any, and its elements are in row-major order.
  Dims sizes = {};
  static constexpr size_t kZeros = SIZE_MAX;  // nothing that is stored, but zeros
};

// A run of elements in the bytes of a stored object.
struct ViewRun {
  size_t object = SIZE_MAX;  // number of the stored object; SIZE_MAX: there is none
  uint64_t begin = 0;        // byte of the first element
  DType dtype = DType::kInvalid;
};

struct ViewTensor {
  std::string name;
  std::string path = {};
  Dims shape;
  // Of one dtype, that of those which are stored; none meet, together they are all of the tensor.
  std::vector<ViewPiece> pieces;
  ViewRun run = {};  // all of a tensor of one dimension, which then has no pieces

  bool is_run() const { return run.object != SIZE_MAX; }
};

struct ViewObject {
  std::string name;
  std::string path = {};
  std::string content_type = {};
  // Number of the stored object, or kOwnBytes: then `bytes` is what it holds. A stored object keeps
  // its content type.
  size_t object = 0;
  std::vector<std::byte> bytes = {};
  static constexpr size_t kOwnBytes = SIZE_MAX;
};

// Of a stored tensor the name, path and shape; its pieces are the caller's to say.
ViewTensor named_as_stored(const plan::Catalog& catalog, size_t tensor);
// The same as it is stored, a piece for each of its chunks.
ViewTensor tensor_as_stored(const plan::Catalog& catalog, size_t tensor);
// A stored object as it is.
ViewObject as_stored(const plan::Catalog& catalog, size_t object);

struct ViewContents {
  std::vector<ViewTensor> tensors;
  std::vector<ViewObject> objects;
  // Tells this view of the source from others.
  std::string identity;
};

// INVALID_ARGUMENT naming the tensor whose pieces leave a hole, meet, leave their source, differ in
// dtype or are all zeros, and whose run leaves its object. The source's runtime outlives the view.
Result<std::shared_ptr<const Checkpoint>> make_view(Runtime& runtime,
                                                    std::shared_ptr<const Checkpoint> source,
                                                    ViewContents contents);

}  // namespace shardwright::exec
