// SPDX-License-Identifier: Apache-2.0
//
// Directories of torch.distributed.checkpoint made by hand, sound or not. Tensors are float32.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/storage/storage.h"

namespace shardwright::format::torch_dcp::test {

// An item: what stands in a file, and what the index says of it.
struct SampleItem {
  std::string bytes;
  std::string file = "__0_0.distcp";
  std::vector<std::string> transforms = {};  // as the index names them
  int64_t offset = 0;                        // set by place_items
  int64_t length = 0;
};

struct SampleChunk {
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes;
  SampleItem item;
};

struct SampleTensor {
  std::string name = "w";
  std::vector<int64_t> shape;
  std::vector<SampleChunk> chunks;
};

struct SampleObject {
  std::string name = "step";
  SampleItem item;
};

struct SampleDirectory {
  std::vector<SampleTensor> tensors;
  std::vector<SampleObject> objects;
};

// The archive of one tensor of these elements (4 bytes each), as torch writes it.
std::string tensor_item(const std::vector<int64_t>& sizes, std::string_view elements);
// The archive of one value.
std::string value_item(std::string pickle);
// Frames of zstd.
std::string packed(std::string_view bytes);

// Puts items behind each other in their files.
void place_items(SampleDirectory* directory);
// The index, of items that were placed.
std::string index_of(const SampleDirectory& directory);
// All files below a prefix: those of the items and the index.
void store(storage::Storage* storage, std::string_view prefix, const SampleDirectory& directory);
// place_items and store.
void place_and_store(storage::Storage* storage, std::string_view prefix, SampleDirectory directory);

}  // namespace shardwright::format::torch_dcp::test
