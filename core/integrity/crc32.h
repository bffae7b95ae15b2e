// SPDX-License-Identifier: Apache-2.0
//
// CRC-32 as zip archives and gzip have it (reflected polynomial 0xEDB88320). It finds accidents in
// what others wrote; our own files have digests (digest.h). Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shardwright::integrity {

// Of so_far's bytes followed by these; 0 is the checksum of no bytes.
uint32_t crc32(uint32_t so_far, std::span<const std::byte> bytes);
// Of two runs of bytes, one behind the other, by the checksum of each: so parts can be summed by
// several threads. O(log second_bytes).
uint32_t crc32_of_both(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace shardwright::integrity
