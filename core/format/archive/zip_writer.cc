// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/zip_writer.h"

#include <bit>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/archive/record_bytes_internal.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_reader_internal.h"
#include "core/format/archive/zip_records_internal.h"

namespace shardwright::format::archive {
namespace {

using internal::kAllOnes;
using internal::kAllOnes16;

constexpr uint16_t kMadeByUnix = 0x031E;
constexpr uint16_t kNeededWide = 45;
constexpr std::byte kPad{'Z'};
constexpr uint16_t kPadField = 0x4246;  // "FB", as torch.save calls its padding
uint32_t narrow(uint64_t number) {
  return number >= kAllOnes ? kAllOnes : static_cast<uint32_t>(number);
}

Status too_large(std::string_view what) {
  return resource_exhausted("archive", fmt::format("an archive cannot hold {}", what));
}

}  // namespace

bool ZipWriter::Entry::is_large() const {
  return place.size_bytes >= kAllOnes;
}

bool ZipWriter::Entry::is_far() const {
  return place.header_offset >= kAllOnes;
}

// torch.save writes no trailer behind nothing.
bool ZipWriter::has_trailer(const Entry& entry) const {
  return framing_ == ZipFraming::kTorch && entry.place.size_bytes > 0;
}

uint64_t ZipWriter::trailer_bytes(const Entry& entry) const {
  if (!has_trailer(entry)) return 0;
  return entry.is_large() || entry.is_far() ? internal::kDescriptor64Bytes
                                            : internal::kDescriptorBytes;
}

// Of the zip64 field in front of the payload. torch.save's says the offset as well.
uint64_t ZipWriter::local_wide_bytes(const Entry& entry) const {
  const uint64_t numbers =
      (entry.is_large() ? 2U : 0U) + (framing_ == ZipFraming::kTorch && entry.is_far() ? 1U : 0U);
  return numbers == 0 ? 0 : internal::kExtraHeadBytes + numbers * sizeof(uint64_t);
}

uint64_t ZipWriter::central_bytes(const Entry& entry) const {
  const uint64_t numbers = (entry.is_large() ? 2U : 0U) + (entry.is_far() ? 1U : 0U);
  return internal::kCentralBytes + entry.name.size() +
         (numbers == 0 ? 0 : internal::kExtraHeadBytes + numbers * sizeof(uint64_t));
}

uint16_t ZipWriter::flags(const Entry& entry) const {
  return internal::kFlagUtf8 | (has_trailer(entry) ? internal::kFlagDescriptor : uint16_t{0});
}

Result<size_t> ZipWriter::add(std::string_view name, uint64_t size_bytes,
                              uint64_t alignment_bytes) {
  if (!std::has_single_bit(alignment_bytes) || alignment_bytes > kMaxZipAlignmentBytes)
    return invalid_argument(
        fmt::format("an archive cannot align its entries to {} bytes", alignment_bytes));
  SHW_RETURN_IF_ERROR(internal::check_name(ArchiveBytes{}, 0, name));
  if (entries_.size() >= kMaxZipEntries)
    return too_large(fmt::format("more than {} entries", kMaxZipEntries));
  const uint64_t hash = hash_text(name);
  if (names_.find(hash, [&](size_t i) { return entries_[i].name == name; }).has_value())
    return already_exists(fmt::format("the archive has an entry '{}'", escape_text(name)));
  Entry entry;
  entry.name = name;
  Place& place = entry.place;
  place.header_offset = next_;
  place.size_bytes = size_bytes;
  uint64_t payload = next_;
  uint64_t end = 0;
  // The pad field is there even when nothing is padded.
  const uint64_t header =
      internal::kLocalBytes + name.size() + local_wide_bytes(entry) + internal::kExtraHeadBytes;
  if (!checked_add(payload, header, &payload) || !checked_add(payload, file_offset_, &payload) ||
      !checked_round_up(payload, alignment_bytes, &payload) ||
      !checked_add(payload - file_offset_, size_bytes, &end) ||
      !checked_add(end, trailer_bytes(entry), &end) || end > uint64_t{1} << 62)
    return too_large(fmt::format("entry '{}' of {} bytes", escape_text(name), size_bytes));
  place.payload_offset = payload - file_offset_;
  place.end_offset = end;
  names_.reserve(entries_.size() + 1, [this](size_t i) { return hash_text(entries_[i].name); });
  names_.insert(hash, entries_.size());
  next_ = end;
  directory_bytes_ += central_bytes(entry);
  entries_.push_back(std::move(entry));
  return entries_.size() - 1;
}

std::vector<std::byte> ZipWriter::header(size_t number) const {
  const Entry& entry = entries_[number];
  const Place& place = entry.place;
  const bool later = framing_ == ZipFraming::kTorch;
  const uint64_t wide_bytes = local_wide_bytes(entry);
  const auto extra_bytes =
      place.payload_offset - place.header_offset - internal::kLocalBytes - entry.name.size();
  const auto pad = static_cast<uint16_t>(extra_bytes - wide_bytes - internal::kExtraHeadBytes);
  const uint32_t size = later ? 0 : narrow(place.size_bytes);
  internal::RecordBytes record;
  record.add(internal::kLocalSignature)
      .add(later || wide_bytes == 0 ? uint16_t{0} : kNeededWide)
      .add(flags(entry))
      .add(internal::kMethodStored)
      .add(uint32_t{0})
      .add(later ? 0U : entry.crc)
      .add(size)
      .add(size)
      .add(static_cast<uint16_t>(entry.name.size()))
      .add(static_cast<uint16_t>(extra_bytes))
      .add_text(entry.name);
  if (wide_bytes > 0) {
    record.add(internal::kZip64Field)
        .add(static_cast<uint16_t>(wide_bytes - internal::kExtraHeadBytes));
    if (entry.is_large()) record.add(place.size_bytes).add(later ? 0 : place.size_bytes);
    if (later && entry.is_far()) record.add(place.header_offset);
  }
  record.add(kPadField).add(pad).add_fill(pad, kPad);
  return std::move(record).take();
}

std::vector<std::byte> ZipWriter::trailer(size_t number) const {
  const Entry& entry = entries_[number];
  internal::RecordBytes record;
  const uint64_t bytes = trailer_bytes(entry);
  if (bytes == 0) return {};
  record.add(internal::kDescriptorSignature).add(entry.crc);
  const uint64_t size = entry.place.size_bytes;
  if (bytes == internal::kDescriptor64Bytes) {
    record.add(size).add(size);
  } else {
    record.add(static_cast<uint32_t>(size)).add(static_cast<uint32_t>(size));
  }
  return std::move(record).take();
}

bool ZipWriter::ends_wide() const {
  return framing_ == ZipFraming::kTorch || entries_.size() >= kAllOnes16 ||
         directory_bytes_ >= kAllOnes || next_ >= kAllOnes;
}

uint64_t ZipWriter::end_bytes() const {
  return directory_bytes_ + internal::kEndBytes +
         (ends_wide() ? internal::kEnd64Bytes + internal::kLocatorBytes : 0);
}

// The record of an entry in the directory.
void ZipWriter::add_central(const Entry& entry, internal::RecordBytes* record) const {
  const uint64_t wide_bytes = central_bytes(entry) - internal::kCentralBytes - entry.name.size();
  const bool is_plain = framing_ == ZipFraming::kPlain;
  const uint32_t size = narrow(entry.place.size_bytes);
  record->add(internal::kCentralSignature)
      .add(uint16_t{0})
      .add(is_plain && wide_bytes > 0 ? kNeededWide : uint16_t{0})
      .add(flags(entry))
      .add(internal::kMethodStored)
      .add(uint32_t{0})  // time, date
      .add(entry.crc)
      .add(size)
      .add(size)
      .add(static_cast<uint16_t>(entry.name.size()))
      .add(static_cast<uint16_t>(wide_bytes))
      .add(uint16_t{0})  // comment
      .add(uint32_t{0})  // disk, internal attributes
      .add(uint32_t{0})  // external attributes
      .add(narrow(entry.place.header_offset))
      .add_text(entry.name);
  if (wide_bytes == 0) return;
  record->add(internal::kZip64Field)
      .add(static_cast<uint16_t>(wide_bytes - internal::kExtraHeadBytes));
  if (entry.is_large()) record->add(entry.place.size_bytes).add(entry.place.size_bytes);
  if (entry.is_far()) record->add(entry.place.header_offset);
}

std::vector<std::byte> ZipWriter::end() const {
  internal::RecordBytes record;
  for (const Entry& entry : entries_) add_central(entry, &record);
  const uint64_t count = entries_.size();
  if (ends_wide()) {
    record.add(internal::kEnd64Signature)
        .add(internal::kEnd64Bytes - 12)
        .add(kMadeByUnix)
        .add(kNeededWide)
        .add(uint64_t{0})  // disks
        .add(count)
        .add(count)
        .add(directory_bytes_)
        .add(next_);
    record.add(internal::kLocatorSignature)
        .add(uint32_t{0})
        .add(next_ + directory_bytes_)
        .add(uint32_t{1});
  }
  const uint16_t few = count >= kAllOnes16 ? kAllOnes16 : static_cast<uint16_t>(count);
  record.add(internal::kEndSignature)
      .add(uint32_t{0})  // disks
      .add(few)
      .add(few)
      .add(narrow(directory_bytes_))
      .add(narrow(next_))
      .add(uint16_t{0});
  return std::move(record).take();
}

}  // namespace shardwright::format::archive
