// SPDX-License-Identifier: Apache-2.0
//
// integrity.json, in which megatron-core from 0.19 on says digests of the files of a directory:
//
//   {"algorithm": "sha256", "files": {NAME: HEX, ...}}
//
// Thread rule of the storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::megatron {

inline constexpr std::string_view kIntegrityName = "integrity.json";
inline constexpr uint64_t kMaxIntegrityBytes = uint64_t{64} << 20;

// Names of files and their SHA-256 as lower-case hex. DATA_LOSS for what is no such text;
// UNIMPLEMENTED for another algorithm. Pure.
Result<std::map<std::string, std::string>> decode_integrity(std::span<const std::byte> bytes);

// The text of integrity.json.
std::string encode_integrity(const std::map<std::string, std::string>& files);
std::string sha256_text(std::span<const std::byte> bytes);  // as it stands there
// Of a file, read whole in parts. NOT_FOUND; failures of the storage.
Result<std::string> sha256_of(const Location& location, std::string_view name);

// Of names in the list, and of the list itself, under which others they lie now; "" = nowhere yet.
using PlacesOfNames = std::map<std::string, std::string, std::less<>>;
// Reads each file that integrity.json names, one DATA_LOSS for each that is missing or has another
// digest, and for an integrity.json that is none; nothing where there is none. Files that it does
// not name are passed over.
Result<std::vector<Status>> compare_listed(const Location& location,
                                           const PlacesOfNames& places = {});

}  // namespace shardwright::format::megatron
