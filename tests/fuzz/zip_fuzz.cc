// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a zip archive: by its directory with all payloads, from its first bytes, and by a
// tail of another length, which must give the same. What is taken fits the archive, and an archive
// that is written of it reads the same.
#include <string>
#include <vector>

#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_writer.h"

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

}  // namespace

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
