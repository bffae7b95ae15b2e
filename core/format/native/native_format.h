// SPDX-License-Identifier: Apache-2.0
//
// Constants and sizes of the native format, shared by writer and reader. The grammar stands in
// docs/formats/native.md.
//
//   PATH/manifest.shw                       size-prefixed FlatBuffer (SHWM), then its XXH3-128 (16
//   bytes, canonical) PATH/<generation>/rank-00000.shw        file header (4 KiB block), extents,
//   index (SHWI), trailer (128 bytes)
//
// Little endian throughout; digests in canonical big-endian byte order. Constants only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardwright::format::native {

inline constexpr uint32_t kFormatMajor = 0;
inline constexpr uint32_t kFormatMinor = 1;
inline constexpr std::string_view kManifestName = "manifest.shw";
inline constexpr std::string_view kJournalName = "journal";  // beside the files of a generation
inline constexpr uint64_t kFileHeaderBytes = 4096;           // extents begin here
inline constexpr uint64_t kTrailerBytes = 128;

std::string rank_file_name(int32_t rank);  // "rank-00000.shw"
std::string rank_file_key(std::string_view generation, int32_t rank);
std::string temporary_manifest_name(std::string_view generation);  // "manifest.shw.<generation>"

}  // namespace shardwright::format::native
