// SPDX-License-Identifier: Apache-2.0
//
// How a save comes to be what a directory holds. Everything new is durable under names of its own
// before the journal appears; its appearing is the commit. Whoever finds the journal reads the
// checkpoint that it names, and the next save carries out what is left (settle):
//
//   1  metadata.json is removed
//   2  common.pt takes the place of the old one, or the old one goes; integrity.json likewise
//   3  .metadata takes the place of the old one
//   4  metadata.json is written
//   5  the journal is removed, then the copies under the names of the generation
//
// Names are durable at the end of each. Megatron-core, which knows no journal, finds the old
// checkpoint up to 1, none up to 4, the new one from then on.
//
//   journal = "SHWPUBL1", generation (32 hex digits), flags, file mode,
//             size and digest of .metadata, of common.pt, of integrity.json; digest of all before
//
// Numbers have 8 bytes, little-endian, digests 16. Flags: 1 = common.pt, 2 = integrity.json, 4 =
// durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::megatron {

inline constexpr std::string_view kJournalName = ".shardwright.publish";
inline constexpr uint64_t kJournalBytes = 8 + 32 + 8 + 8 + 3 * (8 + 16) + 16;

// What stands in a file that is to be put in place.
struct PendingFile {
  uint64_t size_bytes = 0;
  Digest128 digest{};
  friend bool operator==(const PendingFile&, const PendingFile&) = default;
};
PendingFile pending_file(std::span<const std::byte> bytes);

struct Publication {
  std::string generation;
  bool has_common_file = false;
  bool has_integrity = false;
  bool durable = true;
  uint32_t file_mode = 0;
  PendingFile index;
  PendingFile common;
  PendingFile integrity;
  friend bool operator==(const Publication&, const Publication&) = default;
};

std::vector<std::byte> encode_publication(const Publication& publication);
// DATA_LOSS for what is no journal. Pure.
Result<Publication> decode_publication(std::span<const std::byte> bytes);

// NAME.GENERATION: what becomes NAME.
std::string pending_name(std::string_view name, std::string_view generation);
// Of a name that only this format gives a file, or torch DCP's; "" for others.
std::string_view generation_of_file(std::string_view name);

// The bytes of the journal that lies there; none = there is no journal.
Result<std::vector<std::byte>> read_journal(const Location& location);
// The journal that lies there; nullopt = none. DATA_LOSS for one that is damaged.
Result<std::optional<Publication>> read_publication(const Location& location);
// Carries out what a journal leaves to do; nothing without one. What fails can be tried again. One
// at a time.
Status settle(const Location& location);

}  // namespace shardwright::format::megatron
