// SPDX-License-Identifier: Apache-2.0
//
// The end of an archive. A comment, or bytes that follow the archive, may hold what looks like an
// end record; one counts when the directory that it names ends where it begins. Two that count are
// two archives in one, and which of them is meant nobody can say.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_reader_internal.h"
#include "core/format/archive/zip_records_internal.h"

namespace shardwright::format::archive::internal {
namespace {

constexpr size_t kMaxEndRecords = 64;  // things that look like one

// The last bytes of an archive.
class EndSearch {
 public:
  EndSearch(const ArchiveBytes& archive, uint64_t tail_bytes)
      : archive_(archive), offset_(archive.size_bytes - tail_bytes), bytes_(tail_bytes) {}

  Status read() { return archive_.read_range(offset_, bytes_, "its end record"); }

  // None: nothing looks like one, or what does is wrong, which *why then says.
  Result<std::optional<ZipEnd>> find(Status* why) const {
    std::optional<ZipEnd> found;
    size_t seen = 0;
    // What stands in front of a record must be in sight, too: it may be a locator.
    const size_t first = offset_ == 0 ? 0 : kLocatorBytes;
    for (size_t at = bytes_.size() - kEndBytes + 1; at-- > first;) {
      if (bytes_.size() - at > kEndBytes + kMaxZipTrailingBytes) break;
      if (number_at<uint32_t>(bytes_, at) != kEndSignature) continue;
      if (++seen > kMaxEndRecords)
        return fault(at, fmt::format("more than {} end records", kMaxEndRecords));
      ZipEnd end;
      Status status = take(at, &end);
      const bool is_told =  // a failure to read is no answer
          status.code() == StatusCode::kDataLoss || status.code() == StatusCode::kUnimplemented;
      if (!status.ok() && !is_told) return status;
      if (!status.ok() && why->ok()) *why = std::move(status);
      if (is_told) continue;
      if (found.has_value()) return fault(at, "it has two end records, each with a directory");
      found = end;
    }
    return found;
  }

  std::vector<std::byte> take_bytes() && { return std::move(bytes_); }
  uint64_t offset() const { return offset_; }

 private:
  Status fault(size_t at, std::string_view what) const {
    return archive_.damaged(offset_ + at, what);
  }

  // The end record at a place of the tail, if it fits the archive.
  Status take(size_t at, ZipEnd* end) const {
    const auto record = std::span(bytes_).subspan(at);
    const auto disk = number_at<uint16_t>(record, 4);
    const auto directory_disk = number_at<uint16_t>(record, 6);
    const auto entries_here = number_at<uint16_t>(record, 8);
    end->entries = number_at<uint16_t>(record, 10);
    end->directory_bytes = number_at<uint32_t>(record, 12);
    end->directory_offset = number_at<uint32_t>(record, 16);
    if (number_at<uint16_t>(record, 20) > record.size() - kEndBytes)
      return fault(at, "the comment of its end record leaves it");
    uint64_t directory_end = offset_ + at;
    const bool wide =
        at >= kLocatorBytes && number_at<uint32_t>(bytes_, at - kLocatorBytes) == kLocatorSignature;
    if (wide) {
      SHW_RETURN_IF_ERROR(take_wide(at - kLocatorBytes, end, &directory_end));
    } else if (disk != 0 || directory_disk != 0 || entries_here != end->entries) {
      return in_parts(at);
    }
    uint64_t stated_end = 0;
    if (!checked_add(end->directory_offset, end->directory_bytes, &stated_end) ||
        stated_end != directory_end)
      return fault(at, fmt::format("its directory of {} bytes at {} does not end where its end "
                                   "record begins",
                                   end->directory_bytes, end->directory_offset));
    if (end->directory_bytes / kCentralBytes < end->entries)
      return fault(at, fmt::format("{} entries do not fit a directory of {} bytes", end->entries,
                                   end->directory_bytes));
    return {};
  }

  // The zip64 end record that the locator at a place names.
  Status take_wide(size_t at, ZipEnd* end, uint64_t* begin) const {
    const auto locator = std::span(bytes_).subspan(at);
    *begin = number_at<uint64_t>(locator, 8);
    if (number_at<uint32_t>(locator, 4) != 0 || number_at<uint32_t>(locator, 16) > 1)
      return in_parts(at);
    uint64_t least = 0;
    if (!checked_add(*begin, kEnd64Bytes, &least) || least > offset_ + at)
      return fault(at, "its zip64 locator points nowhere");
    std::array<std::byte, kEnd64Bytes> record{};
    SHW_RETURN_IF_ERROR(archive_.read_range(*begin, record, "its zip64 end record"));
    uint64_t record_end = 0;
    if (number_at<uint32_t>(record, 0) != kEnd64Signature ||
        !checked_add(*begin + 12, number_at<uint64_t>(record, 4), &record_end) ||
        record_end != offset_ + at)
      return fault(at, "its zip64 locator points to no zip64 end record");
    const ZipEnd narrow = *end;
    end->entries = number_at<uint64_t>(record, 32);
    end->directory_bytes = number_at<uint64_t>(record, 40);
    end->directory_offset = number_at<uint64_t>(record, 48);
    if (number_at<uint32_t>(record, 16) != 0 || number_at<uint32_t>(record, 20) != 0 ||
        number_at<uint64_t>(record, 24) != end->entries)
      return in_parts(at);
    const auto agree = [](uint64_t few, uint64_t many, uint64_t all_ones) {
      return few == all_ones || few == many;
    };
    const bool same = agree(narrow.entries, end->entries, kAllOnes16) &&
                      agree(narrow.directory_bytes, end->directory_bytes, kAllOnes) &&
                      agree(narrow.directory_offset, end->directory_offset, kAllOnes);
    return same ? Status() : fault(at, "its end record and its zip64 end record differ");
  }

  Status in_parts(size_t at) const {
    return unimplemented(fmt::format("file '{}': the archive that ends at {} is one of several "
                                     "parts; join them first",
                                     archive_.file, archive_.file_offset + offset_ + at))
        .with_detail("file", archive_.file);
  }

  const ArchiveBytes& archive_;
  uint64_t offset_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<ZipTail> read_tail(const ArchiveBytes& archive, uint64_t tail_bytes) {
  if (archive.size_bytes < kEndBytes)
    return archive.damaged(archive.size_bytes, "it is too short for an end record");
  constexpr uint64_t kMost = kEndBytes + kMaxZipTrailingBytes + kLocatorBytes + kEnd64Bytes;
  const uint64_t most = std::min(kMost, archive.size_bytes);
  const uint64_t first = std::min(std::max(tail_bytes, kLocatorBytes + kEndBytes), most);
  Status why;
  for (const uint64_t size : {first, most}) {
    EndSearch search(archive, size);
    SHW_RETURN_IF_ERROR(search.read());
    SHW_ASSIGN_OR_RETURN(const std::optional<ZipEnd> end, search.find(&why));
    if (end.has_value()) {
      const uint64_t offset = search.offset();
      return ZipTail{std::move(search).take_bytes(), offset, *end};
    }
    if (size == most) break;
  }
  if (!why.ok()) return why;
  return archive.damaged(archive.size_bytes,
                         "its end record is missing: the file was cut short, "
                         "or bytes were added to it");
}

}  // namespace shardwright::format::archive::internal
