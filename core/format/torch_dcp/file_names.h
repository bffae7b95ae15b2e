// SPDX-License-Identifier: Apache-2.0
//
// Names in a directory of torch.distributed.checkpoint, its own and ours.
//
//   .metadata                          the index; .metadata.GENERATION while it is written
//   __R_K.distcp                       data of rank R, as torch names it
//   __R_K.GENERATION.distcp            data of rank R, as it is written here
//   HINT__R_K...                       the same of entries whose names begin with HINT
//   .shardwright.GENERATION.digests    digests (digest_sidecar.h)
//   .shardwright.GENERATION.journal    what a conversion has done so far
//   .shardwright.removal               what a removal of entries has left to do (removal_list.h)
//
// Pure functions, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright::format::torch_dcp {

inline constexpr std::string_view kOwnBeginning = ".shardwright.";
inline constexpr std::string_view kRemovalListName = ".shardwright.removal";

struct DataFile {
  int32_t rank = 0;
  uint32_t number = 0;
  std::string_view generation;
  std::string_view hint = "";
};
std::string data_file_name(const DataFile& file);
std::string data_file_name(int32_t rank, std::string_view generation);  // the first one
// What a name of that form says, nullopt for other names. Generation and hint are parts of it.
std::optional<DataFile> parse_data_file_name(std::string_view name);
std::string digests_file_name(std::string_view generation);
std::string journal_file_name(std::string_view generation);

// HINT of a name, "" for other names and for what would make it another file.
std::string_view hint_of(std::string_view name);
// Whether torch or this library would give the name to a file of data.
bool is_data_file(std::string_view name);
// Generation of a file that this library makes, one that is being written included; "" for other
// names.
std::string_view generation_of_file(std::string_view name);
bool is_digests_file(std::string_view name);

}  // namespace shardwright::format::torch_dcp
