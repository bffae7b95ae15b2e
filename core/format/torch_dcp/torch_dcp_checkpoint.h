// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of torch.distributed.checkpoint: a directory with an index (.metadata, or one of each
// rank where ranks saved by themselves) and files of archives. Opening reads the index, the sizes
// of the files and the byte objects; places of tensors are found when they are wanted, by the first
// bytes of their archives. Nothing of a pickle is ever run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::torch_dcp {

inline constexpr std::string_view kFormatName = "torch-dcp";
inline constexpr std::string_view kIndexName = ".metadata";
inline constexpr std::string_view kRankIndexPattern = "__*.metadata";
inline constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 30;

// Whether a key, or the name of a file, is that of an index of all ranks or of one.
bool is_index_name(std::string_view key);

class KeptOpenings;

// The location is a directory with these names directly in it or below. kept: where it is looked
// for first and kept afterwards, or null; bytes: receives what open_shared opens it with, or null.
// DATA_LOSS for what is damaged; PERMISSION_DENIED (unsafe) for
// an index that would call something, or names files elsewhere.
Result<std::shared_ptr<const OpenedCheckpoint>> open_directory(const Location& location,
                                                               std::span<const std::string> names,
                                                               KeptOpenings* kept,
                                                               std::vector<std::byte>* bytes);
// The same by the names of the indexes that count: one, or those of single ranks.
Result<std::shared_ptr<const OpenedCheckpoint>> open_indexes(const Location& location,
                                                             std::span<const std::string> keys,
                                                             KeptOpenings* kept,
                                                             std::vector<std::byte>* bytes);
// What another rank opened; nothing is read.
Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes);

}  // namespace shardwright::format::torch_dcp
