// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/index_classes.h"

#include <array>
#include <string_view>

namespace shardwright::format::torch_dcp {
namespace {

using archive::kPickleCall;
using archive::kPickleDict;
using archive::kPickleEnum;
using archive::kPickleGetattr;
using archive::kPickleInstance;
using archive::PickleClass;

constexpr std::string_view kOldModule = "torch.distributed._shard.sharded_tensor.metadata";
constexpr std::string_view kPlannerModule = "torch.distributed.checkpoint.planner";
constexpr std::string_view kMegatronModule = "megatron.core.dist_checkpointing.strategies.torch";

constexpr std::string_view kMetadataFields[] = {"state_dict_metadata", "planner_data",
                                                "storage_data", "storage_meta", "version"};
constexpr std::string_view kTensorFields[] = {"properties", "size", "chunks"};
constexpr std::string_view kChunkFields[] = {"offsets", "sizes"};
constexpr std::string_view kIndexFields[] = {"fqn", "index", "offset"};
constexpr std::string_view kStorageFields[] = {"relative_path", "offset", "length",
                                               "transform_descriptors"};
constexpr std::string_view kStorageMetaFields[] = {"checkpoint_id", "save_id", "load_id",
                                                   "modules"};

// In the order of IndexClass, then others.
constexpr PickleClass kVocabulary[] = {
    {kMetadataModule, "Metadata", kPickleInstance, kMetadataFields},
    {kMegatronModule, "MCoreMetadata", kPickleInstance, kMetadataFields},
    {kMetadataModule, "TensorStorageMetadata", kPickleInstance, kTensorFields},
    {kMetadataModule, "BytesStorageMetadata", kPickleInstance},
    {kMetadataModule, "ChunkStorageMetadata", kPickleInstance, kChunkFields},
    {kMetadataModule, "MetadataIndex", kPickleInstance, kIndexFields},
    {kFilesModule, "_StorageInfo", kPickleInstance, kStorageFields},
    {kMetadataModule, "TensorProperties", kPickleInstance},
    {kOldModule, "TensorProperties", kPickleInstance},
    {kMetadataModule, "StorageMeta", kPickleInstance, kStorageMetaFields},
    {"torch", "Size", kPickleCall},
    {kMetadataModule, "_MEM_FORMAT_ENCODING", kPickleCall | kPickleEnum},
    {kOldModule, "MEM_FORMAT_ENCODING", kPickleCall | kPickleEnum},
    {"builtins", "getattr", kPickleGetattr},
    {"torch.serialization", "_get_layout", kPickleCall},
    {kFilesModule, "_StoragePrefix", kPickleInstance},
    {kPlannerModule, "SavePlan", kPickleInstance},
    {kPlannerModule, "WriteItem", kPickleInstance},
    {kPlannerModule, "WriteItemType", kPickleCall | kPickleEnum},
    {kPlannerModule, "TensorWriteData", kPickleInstance},
    {kPlannerModule, "BytesIOWriteData", kPickleInstance},
    {kMegatronModule, "MCoreSavePlan", kPickleInstance},
    {"collections", "OrderedDict", kPickleCall},
    {"builtins", "dict", kPickleDict},
    {"builtins", "set", kPickleCall},
    {"builtins", "frozenset", kPickleCall},
    {"__builtin__", "set", kPickleCall},
    {"__builtin__", "frozenset", kPickleCall},
    {"_codecs", "encode", kPickleCall},
    {"pathlib", "PosixPath", kPickleCall},
    {"pathlib", "WindowsPath", kPickleCall},
    {"pathlib", "PurePosixPath", kPickleCall},
    {"pathlib", "PureWindowsPath", kPickleCall},
    {"pathlib._local", "PosixPath", kPickleCall},
    {"pathlib._local", "WindowsPath", kPickleCall},
};
static_assert(kVocabulary[static_cast<size_t>(IndexClass::kSize)].name == "Size");

}  // namespace

std::span<const PickleClass> index_vocabulary() {
  return kVocabulary;
}

}  // namespace shardwright::format::torch_dcp
