// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a zip archive: by its directory with all payloads, from its first bytes, and by a
// tail of another length, which must give the same. What is taken fits the archive, and an archive
// that is written of it reads the same.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_writer.h"
#include "core/integrity/crc32.h"

namespace {

using namespace shardwright::format::archive;  // NOLINT: a fuzz target is one file

constexpr uint64_t kMostBytes = 1 << 20;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// What is readable of the entries, written again.
void write_again(const ZipDirectory& directory, const std::vector<bool>& readable,
                 ZipFraming framing) {
  ZipWriter writer(framing);
  for (size_t i = 0; i < directory.size(); ++i) {
    if (!readable[i]) continue;
    const auto added = writer.add(directory.entry(i).name, directory.entry(i).size_bytes);
    require(added.ok());
  }
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < writer.entry_count(); ++i) {
    const auto header = writer.header(i);
    bytes.insert(bytes.end(), header.begin(), header.end());
    require(bytes.size() == writer.place(i).payload_offset);
    bytes.resize(bytes.size() + writer.place(i).size_bytes);
    const auto trailer = writer.trailer(i);
    bytes.insert(bytes.end(), trailer.begin(), trailer.end());
  }
  const auto end = writer.end();
  bytes.insert(bytes.end(), end.begin(), end.end());
  const ArchiveBytes archive = bytes_of(bytes, 0, "f");
  const auto again = ZipDirectory::read(archive);
  require(again.ok() && again->size() == writer.entry_count());
  for (size_t i = 0; i < again->size(); ++i)
    require(*locate_payload(archive, again->entry(i)) == writer.place(i).payload_offset);
}

void check(const ArchiveBytes& archive, const ZipDirectory& directory) {
  std::vector<bool> readable(directory.size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < directory.size(); ++i) {
    const ZipEntry entry = directory.entry(i);
    require(directory.find(entry.name) == i && entry.end_offset <= archive.size_bytes);
    const auto place = locate_payload(archive, entry);
    const auto payload = read_payload(archive, entry, kMostBytes);
    require(!payload.ok() || (place.ok() && payload->size() == entry.size_bytes));
    require(check_payload(archive, entry).ok() == payload.ok() || entry.size_bytes > kMostBytes);
    readable[i] = place.ok();
    if (place.ok()) bytes += entry.size_bytes;
  }
  require(bytes <= archive.size_bytes);  // nothing is counted twice
  write_again(directory, readable, ZipFraming::kTorch);
  write_again(directory, readable, ZipFraming::kPlain);
}

// Offsets of a record's signature, "PK" and two bytes.
std::vector<size_t> places_of(std::string_view archive, std::string_view signature) {
  std::vector<size_t> places;
  for (size_t at = 0; (at = archive.find(signature, at)) != std::string_view::npos; ++at)
    places.push_back(at);
  return places;
}

template <typename T>
void put(std::string* archive, size_t offset, T value) {
  if (archive->size() >= sizeof(value) && offset <= archive->size() - sizeof(value))
    std::memcpy(archive->data() + offset, &value, sizeof(value));
}

template <typename T>
T get(const std::string& archive, size_t offset) {
  T value{};
  if (archive.size() >= sizeof(value) && offset <= archive.size() - sizeof(value))
    std::memcpy(&value, archive.data() + offset, sizeof(value));
  return value;
}

// Makes offsets, counts and checksums agree with where the records stand, so that mutations reach
// what lies behind those checks.
void repair(std::string* archive) {
  const auto locals = places_of(*archive, "PK\x03\x04");
  const auto centrals = places_of(*archive, "PK\x01\x02");
  const auto ends64 = places_of(*archive, "PK\x06\x06");
  const auto locators = places_of(*archive, "PK\x06\x07");
  const auto ends = places_of(*archive, "PK\x05\x06");
  if (ends.empty()) return;
  const size_t directory_end = ends64.empty() ? ends.back() : ends64.back();
  const size_t directory = centrals.empty() ? directory_end : centrals.front();
  for (size_t i = 0; i < std::min(locals.size(), centrals.size()); ++i) {
    put(archive, centrals[i] + 42, static_cast<uint32_t>(locals[i]));
    const size_t payload = locals[i] + 30 + get<uint16_t>(*archive, locals[i] + 26) +
                           get<uint16_t>(*archive, locals[i] + 28);
    const size_t size = get<uint32_t>(*archive, centrals[i] + 20);
    if (payload > archive->size() || size > archive->size() - payload) continue;
    const auto bytes = std::as_bytes(std::span(*archive)).subspan(payload, size);
    const uint32_t crc = shardwright::integrity::crc32(0, bytes);
    put(archive, centrals[i] + 16, crc);
    if ((get<uint16_t>(*archive, locals[i] + 6) & 8) == 0) put(archive, locals[i] + 14, crc);
  }
  const size_t end = ends.back();
  put(archive, end + 8, static_cast<uint16_t>(centrals.size()));
  put(archive, end + 10, static_cast<uint16_t>(centrals.size()));
  put(archive, end + 12, static_cast<uint32_t>(directory_end - directory));
  put(archive, end + 16, static_cast<uint32_t>(directory));
  if (ends64.empty() || locators.empty()) return;
  put(archive, ends64.back() + 24, uint64_t{centrals.size()});
  put(archive, ends64.back() + 32, uint64_t{centrals.size()});
  put(archive, ends64.back() + 40, uint64_t{directory_end - directory});
  put(archive, ends64.back() + 48, uint64_t{directory});
  put(archive, locators.back() + 8, uint64_t{ends64.back()});
}

}  // namespace

// Only libFuzzer has it; a program that replays inputs has no use for mutations.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size,
                                                         size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  const size_t mutated = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0) return mutated;
  std::string archive(reinterpret_cast<const char*>(data), mutated);
  repair(&archive);
  std::memcpy(data, archive.data(), mutated);
  return mutated;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const ArchiveBytes archive = bytes_of(bytes, 0, "f");
  const auto directory = ZipDirectory::read(archive);
  if (directory.ok()) check(archive, *directory);
  const auto short_tail = ZipDirectory::read(archive, 22);
  require(!directory.ok() || (short_tail.ok() && short_tail->size() == directory->size()));
  const auto head = read_zip_head(archive, bytes.first(size / 2));
  if (!head.ok()) return 0;
  for (const ZipHeadEntry& entry : *head) require(entry.payload_offset >= entry.name.size());
  return 0;
}
