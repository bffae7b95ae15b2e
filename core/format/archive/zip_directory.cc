// SPDX-License-Identifier: Apache-2.0
//
// The central directory: kept as it is stored, with the place of each record.
#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/copy_bytes.h"
#include "core/base/text.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_reader_internal.h"
#include "core/format/archive/zip_records_internal.h"

namespace shardwright::format::archive {
namespace {

using internal::kCentralBytes;
using internal::kLocalBytes;
using internal::number_at;

struct CentralRecord {
  ZipEntry entry;
  uint64_t size_bytes = 0;  // of the record with name, extra and comment
  bool is_wide_known = false;
  uint16_t disk = 0;
};

// The record is long enough for its fixed part; size_bytes says how much there must be for the
// rest, and whether there is.
CentralRecord decode(std::span<const std::byte> from) {
  CentralRecord record;
  ZipEntry& entry = record.entry;
  entry.flags = number_at<uint16_t>(from, 8);
  entry.method = number_at<uint16_t>(from, 10);
  entry.crc = number_at<uint32_t>(from, 16);
  entry.stored_bytes = number_at<uint32_t>(from, 20);
  entry.size_bytes = number_at<uint32_t>(from, 24);
  const size_t name_bytes = number_at<uint16_t>(from, 28);
  const size_t extra_bytes = number_at<uint16_t>(from, 30);
  record.disk = number_at<uint16_t>(from, 34);
  entry.header_offset = number_at<uint32_t>(from, 42);
  record.size_bytes = kCentralBytes + name_bytes + extra_bytes + number_at<uint16_t>(from, 32);
  if (record.size_bytes > from.size()) return record;
  const auto name = from.subspan(kCentralBytes, name_bytes);
  entry.name = {reinterpret_cast<const char*>(name.data()), name.size()};
  record.is_wide_known =
      internal::widen(from.subspan(kCentralBytes + name_bytes, extra_bytes),
                      {&entry.size_bytes, &entry.stored_bytes, &entry.header_offset});
  return record;
}

// What a record says by itself. offset: of the record in the archive.
Status check_record(const ArchiveBytes& archive, uint64_t offset, const CentralRecord& record,
                    uint64_t directory_offset) {
  const ZipEntry& entry = record.entry;
  SHW_RETURN_IF_ERROR(internal::check_name(archive, offset, entry.name));
  const auto fault = [&](std::string_view what) {
    return archive.damaged(offset, fmt::format("entry '{}' {}", escape_text(entry.name), what));
  };
  if (!record.is_wide_known) return fault("has a wrong zip64 field");
  if (record.disk != 0 && record.disk != internal::kAllOnes16)
    return fault("lies in another part of the archive");
  if (entry.method == internal::kMethodStored && entry.stored_bytes != entry.size_bytes)
    return fault(fmt::format("is stored as it is, and its {} bytes take {}", entry.size_bytes,
                             entry.stored_bytes));
  uint64_t end = 0;
  if (!checked_add(entry.header_offset, kLocalBytes + entry.name.size(), &end) ||
      !checked_add(end, entry.stored_bytes, &end) || end > directory_offset)
    return fault(fmt::format("with {} bytes at {} does not lie in front of the directory",
                             entry.stored_bytes, entry.header_offset));
  return {};
}

}  // namespace

Result<ZipDirectory> ZipDirectory::read(const ArchiveBytes& archive, uint64_t tail_bytes) {
  SHW_ASSIGN_OR_RETURN(internal::ZipTail tail, internal::read_tail(archive, tail_bytes));
  const internal::ZipEnd& end = tail.end;
  if (end.entries > kMaxZipEntries)
    return internal::above_limit(archive, fmt::format("{} entries", end.entries), kMaxZipEntries);
  if (end.directory_bytes > kMaxZipDirectoryBytes)
    return internal::above_limit(archive,
                                 fmt::format("a directory of {} bytes", end.directory_bytes),
                                 kMaxZipDirectoryBytes);
  ZipDirectory directory;
  directory.bytes_.resize(static_cast<size_t>(end.directory_bytes));
  if (end.directory_offset >= tail.offset) {
    const auto begin = static_cast<size_t>(end.directory_offset - tail.offset);
    copy_bytes(std::span(tail.bytes).subspan(begin, directory.bytes_.size()), directory.bytes_);
  } else {
    SHW_RETURN_IF_ERROR(
        archive.read_range(end.directory_offset, directory.bytes_, "its directory"));
  }
  SHW_RETURN_IF_ERROR(directory.take_entries(archive, end.directory_offset, end.entries));
  SHW_RETURN_IF_ERROR(directory.index_names(archive, end.directory_offset));
  SHW_RETURN_IF_ERROR(directory.find_ends(archive, end.directory_offset));
  return directory;
}

Status ZipDirectory::take_entries(const ArchiveBytes& archive, uint64_t offset, uint64_t count) {
  begins_.reserve(static_cast<size_t>(count));
  size_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto rest = std::span<const std::byte>(bytes_).subspan(begin);
    if (rest.size() < kCentralBytes || number_at<uint32_t>(rest, 0) != internal::kCentralSignature)
      return archive.damaged(offset + begin, fmt::format("entry {} of {} is missing in its "
                                                         "directory",
                                                         i, count));
    const CentralRecord record = decode(rest);
    if (record.size_bytes > rest.size())
      return archive.damaged(offset + begin, fmt::format("entry {} leaves its directory", i));
    SHW_RETURN_IF_ERROR(check_record(archive, offset + begin, record, offset));
    begins_.push_back(begin);
    begin += static_cast<size_t>(record.size_bytes);
  }
  if (begin == bytes_.size()) return {};
  return archive.damaged(offset + begin,
                         fmt::format("{} bytes of its directory follow the last of {} entries",
                                     bytes_.size() - begin, count));
}

std::string_view ZipDirectory::name_at(size_t index) const {
  const auto record =
      std::span<const std::byte>(bytes_).subspan(static_cast<size_t>(begins_[index]));
  return {reinterpret_cast<const char*>(record.data()) + kCentralBytes,
          number_at<uint16_t>(record, 28)};
}

Status ZipDirectory::index_names(const ArchiveBytes& archive, uint64_t offset) {
  const auto name_of = [this](uint32_t i) { return name_at(i); };
  by_name_.resize(size());
  std::iota(by_name_.begin(), by_name_.end(), 0U);
  std::ranges::sort(by_name_, {}, name_of);
  const auto twice = std::ranges::adjacent_find(by_name_, {}, name_of);
  if (twice == by_name_.end()) return {};
  return archive.damaged(offset + begins_[*twice],
                         fmt::format("it has two entries '{}'", escape_text(name_of(*twice))));
}

// Each entry ends where the next one begins, and has room for what is known of it.
Status ZipDirectory::find_ends(const ArchiveBytes& archive, uint64_t directory_offset) {
  const auto header_at = [this](size_t i) { return entry(i).header_offset; };
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0U);
  if (!std::ranges::is_sorted(order, {}, header_at)) std::ranges::sort(order, {}, header_at);
  ends_.assign(size(), directory_offset);
  for (size_t i = 0; i + 1 < order.size(); ++i) ends_[order[i]] = header_at(order[i + 1]);
  for (const uint32_t i : order) {
    const ZipEntry each = entry(i);
    // Its end was added up before and fits.
    if (each.header_offset + kLocalBytes + each.name.size() + each.stored_bytes <= each.end_offset)
      continue;
    return archive.damaged(
        each.header_offset,
        fmt::format("entry '{}' overlaps the one at {}", escape_text(each.name), each.end_offset));
  }
  return {};
}

ZipEntry ZipDirectory::entry(size_t index) const {
  ZipEntry entry =
      decode(std::span<const std::byte>(bytes_).subspan(static_cast<size_t>(begins_[index]))).entry;
  if (!ends_.empty()) entry.end_offset = ends_[index];
  return entry;
}

std::optional<size_t> ZipDirectory::find(std::string_view name) const {
  const auto name_of = [this](uint32_t i) { return name_at(i); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  if (found == by_name_.end() || name_of(*found) != name) return std::nullopt;
  return *found;
}

}  // namespace shardwright::format::archive
