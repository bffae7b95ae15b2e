// SPDX-License-Identifier: Apache-2.0
//
// Zip archives made for tests, sound ones and ones of which some bytes are then changed.
#pragma once

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/archive/archive_bytes.h"
#include "core/format/archive/zip_writer.h"

namespace shardwright::format::archive::test {

struct SampleEntry {
  std::string name;
  std::string payload;
  uint64_t alignment_bytes = kTorchAlignmentBytes;
};

// Without checksums all of them are 0, which torch writes where it is told to.
enum class Checksummed : uint8_t { kYes, kNo };

// The archive of these entries as the writer makes it.
std::string archive_of(const std::vector<SampleEntry>& entries,
                       ZipFraming framing = ZipFraming::kTorch, uint64_t file_offset = 0,
                       Checksummed checksummed = Checksummed::kYes);

// Where the signature "PK" and these two bytes stands for the nth time (0 = first).
size_t place_of(const std::string& archive, std::string_view signature, size_t nth);
// Changes a number at an offset from there.
template <std::unsigned_integral T>
void patch(std::string* archive, std::string_view signature, size_t nth, size_t offset, T value) {
  std::memcpy(archive->data() + place_of(*archive, signature, nth) + offset, &value, sizeof(value));
}
inline constexpr std::string_view kLocal = "\x03\x04";
inline constexpr std::string_view kCentral = "\x01\x02";
inline constexpr std::string_view kEnd = "\x05\x06";
inline constexpr std::string_view kEnd64 = "\x06\x06";
inline constexpr std::string_view kLocator = "\x06\x07";

// The archive in memory, called "a.zip"; the text outlives it.
ArchiveBytes bytes_of_text(std::string_view archive);
std::string text_of(const std::vector<std::byte>& bytes);

}  // namespace shardwright::format::archive::test
