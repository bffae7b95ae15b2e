// SPDX-License-Identifier: Apache-2.0
//
// A Status as bytes that travel between ranks: code, retryability, the messages from the outermost
// to the first cause, and the details. Little endian. What comes from a peer is bounded and
// checked. Pure functions, any thread.
//
// The key of a host's exception stays behind.
//
//   u32 code, u8 retryable, u32 message count, messages; u32 detail count, {key, value} pairs;
//   a text is u32 size and its bytes
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace shardwright::collective::internal {

// Detail under which a host finds the exception of its callback again. It means something to the
// rank whose callback failed, and to no other: it does not travel.
inline constexpr std::string_view kHostException = "host_exception";
inline constexpr size_t kMaxStatusBytes = size_t{64} * 1024;
inline constexpr size_t kMaxStatusMessages = 16;
inline constexpr size_t kMaxStatusDetails = 64;

// At most kMaxStatusBytes: longer texts and lists are cut. A success gives no bytes.
std::vector<std::byte> encode_status(const Status& status);
// The same of a failure where there is no memory: its message and the details that fit, in room.
// Returns how many bytes of it.
inline constexpr size_t kBriefStatusBytes = 512;
size_t encode_status_briefly(const Status& status,
                             std::span<std::byte, kBriefStatusBytes> room) noexcept;
// INTERNAL for bytes that no rank of this version writes.
Status decode_status(std::span<const std::byte> bytes);
// The cause of an abort as other ranks of this process get it: never a success, and without the
// exception of a host, which belongs to the rank whose callback failed.
Status cause_for_others(const Status& cause) noexcept;

}  // namespace shardwright::collective::internal
