// SPDX-License-Identifier: Apache-2.0
//
// Records of zip archives, as far as stored entries need them: signatures, sizes and flags that
// reader and writer share. Pure.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace shardwright::format::archive::internal {

// PKWARE's application note 6.3:
//   archive    = { local , payload , [ descriptor ] } , { central } , [ end64 , locator ] , end
//   local      = "PK" 03 04, u16 needed, flags, method, time, date, u32 crc, stored, size,
//                u16 name bytes, extra bytes, name, extra
//   descriptor = "PK" 07 08, u32 crc, stored, size            ; u64 sizes with a zip64 field
//   central    = "PK" 01 02, u16 made by, needed, flags, method, time, date, u32 crc, stored, size,
//                u16 name bytes, extra bytes, comment bytes, disk, internal, u32 external, header,
//                name, extra, comment
//   end64      = "PK" 06 06, u64 bytes that follow, u16 made by, needed, u32 disk, disk of
//                directory, u64 entries here, entries, directory bytes, directory offset
//   locator    = "PK" 06 07, u32 disk, u64 offset of end64, u32 disks
//   end        = "PK" 05 06, u16 disk, disk of directory, entries here, entries, u32 directory
//                bytes, directory offset, u16 comment bytes, comment
//   extra      = { u16 id, u16 bytes, content }
//
// Numbers are little-endian; a 32-bit number that does not fit is all ones, and the field zip64 (id
// 1) of the extra has it as u64: of size, stored, header those that are all ones.
static_assert(std::endian::native == std::endian::little, "records are little-endian");

inline constexpr uint32_t kLocalSignature = 0x04034B50;
inline constexpr uint32_t kDescriptorSignature = 0x08074B50;
inline constexpr uint32_t kCentralSignature = 0x02014B50;
inline constexpr uint32_t kEnd64Signature = 0x06064B50;
inline constexpr uint32_t kLocatorSignature = 0x07064B50;
inline constexpr uint32_t kEndSignature = 0x06054B50;

inline constexpr uint64_t kLocalBytes = 30;
inline constexpr uint64_t kDescriptorBytes = 16;
inline constexpr uint64_t kDescriptor64Bytes = 24;
inline constexpr uint64_t kCentralBytes = 46;
inline constexpr uint64_t kEnd64Bytes = 56;
inline constexpr uint64_t kLocatorBytes = 20;
inline constexpr uint64_t kEndBytes = 22;
inline constexpr uint64_t kExtraHeadBytes = 4;

inline constexpr uint32_t kAllOnes = 0xFFFFFFFF;
inline constexpr uint16_t kAllOnes16 = 0xFFFF;
inline constexpr uint16_t kZip64Field = 1;

inline constexpr uint16_t kMethodStored = 0;
inline constexpr uint16_t kFlagEncrypted = 1U << 0;
inline constexpr uint16_t kFlagLevels = 3U << 1;      // how well it was deflated
inline constexpr uint16_t kFlagDescriptor = 1U << 3;  // sizes and checksum follow the payload
inline constexpr uint16_t kFlagPatched = 1U << 5;
inline constexpr uint16_t kFlagStrong = 1U << 6;
inline constexpr uint16_t kFlagUtf8 = 1U << 11;
inline constexpr uint16_t kFlagMasked = 1U << 13;  // the directory is encrypted

// The number at an offset of a record; the record is long enough.
template <std::unsigned_integral T>
T number_at(std::span<const std::byte> record, size_t offset) {
  T value = 0;
  std::memcpy(&value, record.data() + offset, sizeof(value));
  return value;
}

}  // namespace shardwright::format::archive::internal
