// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints of safetensors files: one file, or the files of a directory as Hugging Face and
// torch's Hugging Face writer lay them out. All headers are read when it is opened; there are no
// digests and no generations.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::safetensors {

inline constexpr std::string_view kFileFormat = "safetensors";          // one file
inline constexpr std::string_view kDirectoryFormat = "hf-safetensors";  // files of a directory
inline constexpr std::string_view kFileSuffix = ".safetensors";
inline constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
inline constexpr std::string_view kIndexName = "model.safetensors.index.json";  // the usual one

// Whether a file with these first bytes (16, or all) is one, sound or not; name: of the file.
bool is_safetensors_file(std::span<const std::byte> head, uint64_t file_bytes,
                         std::string_view name);

// The location is one file. bytes: receives what open_shared opens it with, or null. DATA_LOSS for
// what is damaged, UNIMPLEMENTED for a dtype that is not known.
Result<std::shared_ptr<const OpenedCheckpoint>> open_file(const Location& location,
                                                          std::vector<std::byte>* bytes);
// The location is a directory with these names, relative to it. The files are those that its index
// names; without an index, all that lie directly in it. INVALID_ARGUMENT when several indexes leave
// open which one counts; else as open_file.
Result<std::shared_ptr<const OpenedCheckpoint>> open_directory(const Location& location,
                                                               std::span<const std::string> names,
                                                               std::vector<std::byte>* bytes);
// What another rank opened by either; nothing is read.
Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            std::span<const std::byte> bytes);

}  // namespace shardwright::format::safetensors
