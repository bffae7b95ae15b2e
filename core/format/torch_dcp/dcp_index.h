// SPDX-License-Identifier: Apache-2.0
//
// DcpIndex: what the .metadata file of torch.distributed.checkpoint says, in flat columns: tensors
// with their chunks, byte objects, and where each is stored. Hints for positions in it are not
// trusted: chunks are matched by name and offset. Value type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::torch_dcp {

// Where an item lies, as a whole: a torch.save archive, or what a transform made of one.
struct ItemPlace {
  uint32_t file = kNowhere;  // number in DcpIndex::files
  uint32_t transform = 0;    // 0 = none, else number in DcpIndex::transforms and 1
  uint64_t offset = 0;
  uint64_t size_bytes = 0;

  static constexpr uint32_t kNowhere = 0xFFFFFFFF;
};

struct DcpIndex {
  struct Tensor {
    std::string name;
    std::string path;  // JSON text, "" = none
    DType dtype = DType::kInvalid;
    Dims shape;
    uint64_t chunk_begin = 0;   // into places
    uint64_t chunk_count = 0;   // empty ones too
    uint64_t extent_begin = 0;  // into extents
    int32_t rank = -1;          // owner of a rank_local entry; name and path are those without it
  };
  struct Object {
    std::string name;
    std::string path;
    ItemPlace place;
    int32_t rank = -1;
  };

  std::vector<Tensor> tensors;
  std::vector<int64_t> extents;   // of each chunk its offsets, then its sizes
  std::vector<ItemPlace> places;  // of each chunk
  std::vector<Object> objects;
  std::vector<std::string> files;       // keys, each once
  std::vector<std::string> transforms;  // descriptors, joined
  // Version and ids; and each attribute that torch does not set: JSON, or what kind of value it is.
  std::map<std::string, std::string> facts;
  std::vector<std::string> notes;
  std::set<std::string, std::less<>> rank_local;  // names whose keys have ranks behind them

  std::span<const int64_t> offsets(const Tensor& tensor, uint64_t chunk) const {
    const size_t dims = tensor.shape.size();
    return std::span(extents).subspan(tensor.extent_begin + chunk * 2 * dims, dims);
  }
  std::span<const int64_t> sizes(const Tensor& tensor, uint64_t chunk) const {
    const size_t dims = tensor.shape.size();
    return std::span(extents).subspan(tensor.extent_begin + (chunk * 2 + 1) * dims, dims);
  }
};

// Bytes that the elements of a chunk take, as large as can be counted where the index says more.
uint64_t chunk_bytes(const DcpIndex& index, const DcpIndex::Tensor& tensor, uint64_t chunk);

// Reads an index. file: what messages call it. DATA_LOSS for what is damaged; PERMISSION_DENIED
// (unsafe) for a call that has no place in it and for a path that leads out of the checkpoint;
// UNIMPLEMENTED for a dtype that is not known.
Result<DcpIndex> decode_index(std::span<const std::byte> bytes, std::string_view file);

// The value of an attribute of the index that torch does not set (Megatron's all_local_plans and
// mcore_data), as a pickle of its own. nullopt when there is none. The failures of decode_index.
Result<std::optional<std::string>> index_attribute(std::span<const std::byte> bytes,
                                                   std::string_view file, std::string_view name);

// The indexes of ranks that saved by themselves, in their order, as one. Of an object or a chunk
// that several have the first counts. DATA_LOSS when they do not fit together.
Result<DcpIndex> merge_indexes(std::vector<DcpIndex> ranks);

// Gives the entries that rank_local_names.h tells to ranks their names and ranks.
void name_rank_local(DcpIndex* index);

}  // namespace shardwright::format::torch_dcp
