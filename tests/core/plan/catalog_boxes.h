// SPDX-License-Identifier: Apache-2.0
//
// with_boxes: the same catalog with every chunk as a box, for tests that damage chunks one by one.
#pragma once

#include <vector>

#include "core/plan/catalog.h"

namespace shardwright::plan {

inline Catalog with_boxes(const Catalog& from) {
  Catalog catalog;
  CatalogBuilder builder(&catalog);
  for (size_t t = 0; t < from.tensors.size(); ++t) {
    const TensorRecord& tensor = from.tensors[t];
    std::vector<CatalogBuilder::Chunk> chunks;
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
      chunks.push_back({from.chunk_box(c), from.place_of(c)});
    }
    const Status added = builder.add_tensor({from.tensor_name(t), from.texts.at(tensor.path),
                                             tensor.dtype, tensor.kind, tensor.rank, from.shape(t)},
                                            chunks);
    if (!added.ok()) return Catalog();
  }
  for (const ObjectRecord& object : from.objects) {
    const Status added =
        builder.add_object(object, from.texts.at(object.name), from.texts.at(object.path),
                           from.texts.at(object.content_type));
    if (!added.ok()) return Catalog();
  }
  return catalog;
}

}  // namespace shardwright::plan
