// SPDX-License-Identifier: Apache-2.0
//
// Local headers, and what lies behind them.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_reader_internal.h"
#include "core/format/archive/zip_records_internal.h"
#include "core/integrity/crc32.h"

namespace shardwright::format::archive {
namespace internal {
namespace {

std::string_view method_name(uint16_t method) {
  switch (method) {
    case 8:
      return "deflated";
    case 9:
      return "deflated (64 KiB)";
    case 12:
      return "compressed by bzip2";
    case 14:
      return "compressed by LZMA";
    case 93:
      return "compressed by zstd";
    case 95:
      return "compressed by xz";
    default:
      return "compressed";
  }
}

bool leads_out(std::string_view name) {
  const auto is_separator = [](char character) { return character == '/' || character == '\\'; };
  if (is_separator(name.front()) || (name.size() > 1 && name[1] == ':')) return true;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = begin;
    while (end < name.size() && !is_separator(name[end])) ++end;
    if (name.substr(begin, end - begin) == "..") return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

Status above_limit(const ArchiveBytes& archive, std::string_view what, uint64_t limit) {
  return resource_exhausted("archive", fmt::format("file '{}': the archive has {}, more than {}",
                                                   escape_text(archive.file), what, limit))
      .with_detail("file", archive.file)
      .with_detail("limit", fmt::to_string(limit));
}

Status check_name(const ArchiveBytes& archive, uint64_t offset, std::string_view name) {
  if (name.size() > kMaxZipNameBytes) {
    return above_limit(archive, fmt::format("a name of {} bytes", name.size()), kMaxZipNameBytes);
  }
  if (name.empty()) return archive.damaged(offset, "an entry has no name");
  if (!is_valid_utf8(name) || name.find('\0') != std::string_view::npos)
    return archive.damaged(
        offset, fmt::format("the name '{}' is no UTF-8 text without NUL", escape_text(name)));
  if (!leads_out(name)) return {};
  return permission_denied(fmt::format("file '{}': the name '{}' of an archive's entry leads out "
                                       "of it",
                                       escape_text(archive.file), escape_text(name)))
      .with_detail("file", archive.file)
      .with_detail("offset", fmt::to_string(archive.file_offset + offset))
      .with_detail("unsafe", "path escape");
}

Status check_readable(const ArchiveBytes& archive, uint64_t offset, std::string_view name,
                      uint16_t method, uint16_t flags) {
  const auto refuse = [&](std::string_view what) {
    return unimplemented(fmt::format("file '{}': entry '{}' of the archive at {} is {}; only what "
                                     "is stored as it is can be read",
                                     escape_text(archive.file), escape_text(name),
                                     archive.file_offset + offset, what))
        .with_detail("file", archive.file)
        .with_detail("offset", fmt::to_string(archive.file_offset + offset))
        .with_detail("hint", "load it with the tool that wrote it and save it without compression");
  };
  if ((flags & (kFlagEncrypted | kFlagStrong | kFlagMasked)) != 0) return refuse("encrypted");
  if ((flags & kFlagPatched) != 0) return refuse("patch data");
  if (method == kMethodStored) return {};
  return refuse(fmt::format("{} (method {})", method_name(method), method));
}

bool widen(std::span<const std::byte> extra, std::initializer_list<uint64_t*> numbers) {
  std::span<const std::byte> wide;
  bool is_there = false;
  for (std::span<const std::byte> rest = extra; rest.size() >= kExtraHeadBytes;) {
    const size_t bytes = number_at<uint16_t>(rest, 2);
    if (bytes > rest.size() - kExtraHeadBytes) return false;
    if (number_at<uint16_t>(rest, 0) == kZip64Field) {
      if (is_there) return false;
      is_there = true;
      wide = rest.subspan(kExtraHeadBytes, bytes);
    }
    rest = rest.subspan(kExtraHeadBytes + bytes);
  }
  for (uint64_t* const number : numbers) {
    if (*number != kAllOnes) continue;
    if (wide.size() < sizeof(uint64_t)) return false;
    *number = number_at<uint64_t>(wide, 0);
    wide = wide.subspan(sizeof(uint64_t));
  }
  return true;
}

}  // namespace internal

namespace {

using internal::kLocalBytes;
using internal::number_at;

constexpr uint64_t kCheckStepBytes = uint64_t{1} << 20;
constexpr uint64_t kNowhere = ~uint64_t{0};

struct LocalHeader {
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t stored_bytes = 0;
  uint64_t size_bytes = 0;
  size_t name_bytes = 0;
  size_t extra_bytes = 0;

  uint64_t header_bytes() const { return kLocalBytes + name_bytes + extra_bytes; }
  // Crc and sizes follow the payload.
  bool is_open() const { return (flags & internal::kFlagDescriptor) != 0; }
};

// record has kLocalBytes and begins with the signature.
LocalHeader decode_local(std::span<const std::byte> record) {
  LocalHeader local;
  local.flags = number_at<uint16_t>(record, 6);
  local.method = number_at<uint16_t>(record, 8);
  local.crc = number_at<uint32_t>(record, 14);
  local.stored_bytes = number_at<uint32_t>(record, 18);
  local.size_bytes = number_at<uint32_t>(record, 22);
  local.name_bytes = number_at<uint16_t>(record, 26);
  local.extra_bytes = number_at<uint16_t>(record, 28);
  return local;
}

bool is_local(std::span<const std::byte> record) {
  return record.size() >= kLocalBytes &&
         number_at<uint32_t>(record, 0) == internal::kLocalSignature;
}

// Sizes of a local header that the field zip64 has are read from it.
Status widen_local(const ArchiveBytes& archive, const ZipEntry& entry, LocalHeader* local) {
  if (local->stored_bytes != internal::kAllOnes && local->size_bytes != internal::kAllOnes)
    return {};
  std::vector<std::byte> extra(local->extra_bytes);
  SHW_RETURN_IF_ERROR(archive.read_range(entry.header_offset + kLocalBytes + local->name_bytes,
                                         extra, "a local header"));
  if (internal::widen(extra, {&local->size_bytes, &local->stored_bytes})) return {};
  return archive.damaged(entry.header_offset, "a local header has a wrong zip64 field");
}

// Whether a header says the same as the directory; what follows the payload may be 0 in front.
bool agrees(const LocalHeader& local, const ZipEntry& entry) {
  const auto same = [&local](uint64_t here, uint64_t there) {
    return here == there || (local.is_open() && here == 0);
  };
  const auto kept = static_cast<uint16_t>(~internal::kFlagLevels);
  return local.method == entry.method && (local.flags & kept) == (entry.flags & kept) &&
         same(local.crc, entry.crc) && same(local.stored_bytes, entry.stored_bytes) &&
         same(local.size_bytes, entry.size_bytes);
}

Status compare_crc(const ArchiveBytes& archive, const ZipEntry& entry, uint32_t found) {
  // torch.save writes 0 when it is told to compute none.
  if (entry.crc == 0 || entry.crc == found) return {};
  return archive
      .damaged(entry.header_offset, fmt::format("CRC-32 of entry '{}' is {:08x}, expected {:08x}",
                                                escape_text(entry.name), found, entry.crc))
      .with_detail("expected", fmt::format("{:08x}", entry.crc))
      .with_detail("found", fmt::format("{:08x}", found));
}

}  // namespace

Result<uint64_t> locate_payload(const ArchiveBytes& archive, const ZipEntry& entry) {
  SHW_RETURN_IF_ERROR(internal::check_readable(archive, entry.header_offset, entry.name,
                                               entry.method, entry.flags));
  std::vector<std::byte> header(kLocalBytes + entry.name.size());
  SHW_RETURN_IF_ERROR(archive.read_range(entry.header_offset, header, "a local header"));
  const auto fault = [&](std::string_view what) {
    return archive.damaged(entry.header_offset, fmt::format("the local header of entry '{}' {}",
                                                            escape_text(entry.name), what));
  };
  if (!is_local(header)) return fault("is missing");
  LocalHeader local = decode_local(header);
  const std::string_view name(reinterpret_cast<const char*>(header.data()) + kLocalBytes,
                              entry.name.size());
  if (local.name_bytes != entry.name.size() || name != entry.name) return fault("has another name");
  // Both are within the archive: what is known of the entry was added up before.
  const uint64_t payload = entry.header_offset + local.header_bytes();
  if (payload > entry.end_offset || entry.stored_bytes > entry.end_offset - payload)
    return fault(fmt::format("leaves no room for its {} bytes", entry.stored_bytes));
  SHW_RETURN_IF_ERROR(widen_local(archive, entry, &local));
  if (!agrees(local, entry)) return fault("differs from the directory");
  return payload;
}

Result<std::vector<std::byte>> read_payload(const ArchiveBytes& archive, const ZipEntry& entry,
                                            uint64_t limit_bytes) {
  SHW_ASSIGN_OR_RETURN(const uint64_t payload, locate_payload(archive, entry));
  if (entry.size_bytes > limit_bytes) {
    const std::string what =
        fmt::format("an entry '{}' of {} bytes", escape_text(entry.name), entry.size_bytes);
    return internal::above_limit(archive, what, limit_bytes);
  }
  std::vector<std::byte> bytes(static_cast<size_t>(entry.size_bytes));
  SHW_RETURN_IF_ERROR(archive.read_range(payload, bytes, "a payload"));
  SHW_RETURN_IF_ERROR(compare_crc(archive, entry, integrity::crc32(0, bytes)));
  return bytes;
}

Status check_payload(const ArchiveBytes& archive, const ZipEntry& entry) {
  SHW_ASSIGN_OR_RETURN(const uint64_t payload, locate_payload(archive, entry));
  std::vector<std::byte> step(static_cast<size_t>(std::min(entry.size_bytes, kCheckStepBytes)));
  uint32_t crc = 0;
  for (uint64_t done = 0; done < entry.size_bytes;) {
    const auto bytes = std::span(step).first(
        static_cast<size_t>(std::min<uint64_t>(step.size(), entry.size_bytes - done)));
    SHW_RETURN_IF_ERROR(archive.read_range(payload + done, bytes, "a payload"));
    crc = integrity::crc32(crc, bytes);
    done += bytes.size();
  }
  return compare_crc(archive, entry, crc);
}

namespace {

// The first of the ascending offsets at which the entry's payload may begin.
std::optional<uint64_t> first_in(const ZipEntry& entry, std::span<const uint64_t> payloads) {
  const auto found = std::ranges::upper_bound(payloads, entry.header_offset);
  if (found == payloads.end() || *found > entry.end_offset) return std::nullopt;
  return *found;
}

}  // namespace

Status check_payloads(const ArchiveBytes& archive, const PayloadsToCheck& which) {
  SHW_ASSIGN_OR_RETURN(const ZipDirectory directory, ZipDirectory::read(archive, which.tail_bytes));
  for (size_t i = 0; i < directory.size(); ++i) {
    const ZipEntry entry = directory.entry(i);
    if (entry.method != internal::kMethodStored) continue;
    if (const auto left_out = first_in(entry, which.but_payloads); left_out.has_value()) {
      SHW_ASSIGN_OR_RETURN(const uint64_t payload, locate_payload(archive, entry));
      if (payload == *left_out) continue;
    }
    SHW_RETURN_IF_ERROR(check_payload(archive, entry));
  }
  return {};
}

std::optional<uint32_t> crc_behind(std::span<const std::byte> bytes, uint64_t size_bytes) {
  if (bytes.size() < internal::kDescriptorBytes ||
      number_at<uint32_t>(bytes, 0) != internal::kDescriptorSignature)
    return std::nullopt;
  const bool is_small =
      number_at<uint32_t>(bytes, 8) == size_bytes && number_at<uint32_t>(bytes, 12) == size_bytes;
  const bool is_wide = bytes.size() >= internal::kDescriptor64Bytes &&
                       number_at<uint64_t>(bytes, 8) == size_bytes &&
                       number_at<uint64_t>(bytes, 16) == size_bytes;
  if (!is_small && !is_wide) return std::nullopt;
  return number_at<uint32_t>(bytes, 4);
}

Result<uint32_t> crc_of_payload(const ArchiveBytes& archive, uint64_t payload_offset,
                                uint64_t size_bytes) {
  uint64_t end = 0;
  std::array<std::byte, kMostDescriptorBytes> memory;
  if (!checked_add(payload_offset, size_bytes, &end) || end > archive.size_bytes)
    return archive.damaged(payload_offset, "it ends in a payload");
  const auto behind =
      std::span(memory).first(std::min<uint64_t>(memory.size(), archive.size_bytes - end));
  SHW_RETURN_IF_ERROR(archive.read_range(end, behind, "what follows a payload"));
  if (const auto crc = crc_behind(behind, size_bytes)) return *crc;
  SHW_ASSIGN_OR_RETURN(const ZipDirectory directory, ZipDirectory::read(archive));
  for (size_t i = 0; i < directory.size(); ++i) {
    const ZipEntry entry = directory.entry(i);
    if (!first_in(entry, {&payload_offset, 1}) || entry.size_bytes != size_bytes) continue;
    SHW_ASSIGN_OR_RETURN(const uint64_t payload, locate_payload(archive, entry));
    if (payload == payload_offset) return entry.crc;
  }
  return archive.damaged(payload_offset, "its directory has no record that begins there");
}

namespace {

// Bytes of a payload whose size follows it, when all of both lies in bytes: a descriptor counts
// when it says how far away it is, and the checksum of what lies between.
std::optional<uint64_t> find_descriptor(std::span<const std::byte> bytes) {
  for (size_t at = 0; at + internal::kDescriptorBytes <= bytes.size(); ++at) {
    if (number_at<uint32_t>(bytes, at) != internal::kDescriptorSignature) continue;
    const auto descriptor = bytes.subspan(at, internal::kDescriptorBytes);
    if (number_at<uint32_t>(descriptor, 8) != at || number_at<uint32_t>(descriptor, 12) != at)
      continue;
    const auto crc = number_at<uint32_t>(descriptor, 4);
    if (crc == 0 || crc == integrity::crc32(0, bytes.first(at))) return at;
  }
  return std::nullopt;
}

// The entry whose header begins bytes, and where the next one begins, far away when that is not
// known. nullopt: its name leaves the bytes.
Result<std::optional<ZipHeadEntry>> take_head_entry(const ArchiveBytes& archive, uint64_t offset,
                                                    std::span<const std::byte> bytes,
                                                    uint64_t* next) {
  LocalHeader local = decode_local(bytes);
  const auto named = static_cast<size_t>(kLocalBytes + local.name_bytes);
  if (named > bytes.size()) return std::optional<ZipHeadEntry>();
  ZipHeadEntry entry;
  entry.name = {reinterpret_cast<const char*>(bytes.data()) + kLocalBytes, local.name_bytes};
  SHW_RETURN_IF_ERROR(internal::check_name(archive, offset, entry.name));
  SHW_RETURN_IF_ERROR(
      internal::check_readable(archive, offset, entry.name, local.method, local.flags));
  entry.payload_offset = offset + local.header_bytes();
  *next = kNowhere;
  const bool is_whole = local.header_bytes() <= bytes.size();
  if (local.is_open()) {
    if (!is_whole) return std::optional(entry);
    const auto payload = bytes.subspan(static_cast<size_t>(local.header_bytes()));
    entry.size_bytes = find_descriptor(payload);
    if (!entry.size_bytes.has_value()) return std::optional(entry);
    *next = entry.payload_offset + *entry.size_bytes + internal::kDescriptorBytes;
    entry.crc = number_at<uint32_t>(payload, static_cast<size_t>(*entry.size_bytes) + 4);
    return std::optional(entry);
  }
  if (is_whole && !internal::widen(bytes.subspan(named, local.extra_bytes),
                                   {&local.size_bytes, &local.stored_bytes}))
    return archive.damaged(offset, "a local header has a wrong zip64 field");
  if (local.size_bytes != local.stored_bytes)
    return archive.damaged(offset, "a local header has two sizes of what is stored as it is");
  if (is_whole || local.size_bytes != internal::kAllOnes) entry.size_bytes = local.size_bytes;
  entry.crc = local.crc;
  if (entry.size_bytes.has_value() && !checked_add(entry.payload_offset, *entry.size_bytes, next))
    return archive.damaged(offset, "a local header has a size beyond what can be counted");
  return std::optional(entry);
}

}  // namespace

Result<std::vector<ZipHeadEntry>> read_zip_head(const ArchiveBytes& archive,
                                                std::span<const std::byte> head) {
  std::vector<ZipHeadEntry> entries;
  for (uint64_t offset = 0; offset < head.size();) {
    const auto bytes = head.subspan(static_cast<size_t>(offset));
    if (!is_local(bytes)) break;
    uint64_t next = kNowhere;
    SHW_ASSIGN_OR_RETURN(const std::optional<ZipHeadEntry> entry,
                         take_head_entry(archive, offset, bytes, &next));
    if (!entry.has_value()) break;
    entries.push_back(*entry);
    offset = next;
  }
  return entries;
}

}  // namespace shardwright::format::archive
