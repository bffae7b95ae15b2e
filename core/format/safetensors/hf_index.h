// SPDX-License-Identifier: Apache-2.0
//
// The JSON texts that make one checkpoint of several safetensors files: the index of a Hugging Face
// directory (which tensor lies in which file), and the metadata value of torch's Hugging Face
// writer that says where in the whole tensor the part of a file belongs. Pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dims.h"

namespace shardwright::format::safetensors {

inline constexpr uint64_t kMaxIndexBytes = 100'000'000;
inline constexpr std::string_view kShardingKey = "DCP_SHARDING_INFO";  // in __metadata__

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <typename Value>
using ByName = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

struct HfIndex {
  std::vector<std::string> files;               // ascending; keys inside the directory
  ByName<uint32_t> file_of;                     // of each tensor the number of its file
  std::optional<uint64_t> total_size;           // as the index says, often wrong
  std::map<std::string, std::string> metadata;  // its other scalars, as texts
};

// file: what messages call it. DATA_LOSS for what is no index, names a tensor twice, or names a
// file that may lie outside of the directory.
Result<HfIndex> decode_index(std::string_view text, std::string_view file);

// Where the part that a file holds begins in each tensor. DATA_LOSS as above.
Result<ByName<Dims>> decode_sharding(std::string_view text, std::string_view file);

}  // namespace shardwright::format::safetensors
