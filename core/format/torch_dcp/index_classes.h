// SPDX-License-Identifier: Apache-2.0
//
// The globals that an index of torch.distributed.checkpoint is made of, torch 2.1 to 2.15 and
// Megatron's extras. What is not among them may stand in an index, and be kept, but not be called.
// Immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/format/archive/pickle_reader.h"

namespace shardwright::format::torch_dcp {

inline constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";
inline constexpr std::string_view kFilesModule = "torch.distributed.checkpoint.filesystem";

// Positions in index_vocabulary().
enum class IndexClass : int32_t {
  kMetadata,
  kMegatronMetadata,
  kTensor,
  kBytes,
  kChunk,
  kIndex,
  kStorageInfo,
  kProperties,
  kOldProperties,
  kStorageMeta,
  kSize,
  kFirstOther,  // those that are read as they are
};

// Fields of the classes in the order of their slots.
enum class MetadataField : uint8_t { kStates, kPlanner, kStorage, kStorageMeta, kVersion };
enum class TensorField : uint8_t { kProperties, kSize, kChunks };
enum class ChunkField : uint8_t { kOffsets, kSizes };
enum class IndexField : uint8_t { kName, kHint, kOffset };
enum class StorageField : uint8_t { kPath, kOffset, kLength, kTransforms };
enum class StorageMetaField : uint8_t { kCheckpoint, kSave, kLoad, kModules };

std::span<const archive::PickleClass> index_vocabulary();

}  // namespace shardwright::format::torch_dcp
