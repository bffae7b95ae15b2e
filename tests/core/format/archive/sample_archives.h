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

// The archive of these entries as the writer makes it.
std::string archive_of(const std::vector<SampleEntry>& entries,
                       ZipFraming framing = ZipFraming::kTorch, uint64_t file_offset = 0);

// Changes a number in the nth place (0 = first) where the signature "PK" and these two bytes stand.
template <std::unsigned_integral T>
void patch(std::string* archive, std::string_view signature, size_t nth, size_t offset, T value) {
  const std::string wanted = "PK" + std::string(signature);
  size_t at = archive->find(wanted);
  for (; nth > 0; --nth) at = archive->find(wanted, at + 1);
  std::memcpy(archive->data() + at + offset, &value, sizeof(value));
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
