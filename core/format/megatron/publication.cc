// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/publication.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/base/generation_id.h"
#include "core/base/limits.h"
#include "core/format/megatron/listed_digests.h"
#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/unsharded_state.h"
#include "core/format/torch_dcp/entry_removal.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/integrity/digest.h"

namespace shardwright::format::megatron {
namespace {

constexpr std::string_view kMagic = "SHWPUBL1";
constexpr uint64_t kCommonFlag = 1;
constexpr uint64_t kIntegrityFlag = 2;
constexpr uint64_t kDurableFlag = 4;

Status damaged(std::string_view what) {
  return data_loss(fmt::format("file '{}' {}", kJournalName, what))
      .with_detail("file", kJournalName)
      .with_detail("hint",
                   "it says which of two checkpoints this directory holds: restore it, or move it "
                   "away to open what the other files say");
}

void append(std::span<const std::byte> bytes, std::vector<std::byte>* out) {
  out->insert(out->end(), bytes.begin(), bytes.end());
}

void append_number(uint64_t number, std::vector<std::byte>* out) {
  append(std::as_bytes(std::span(&number, 1)), out);
}

void append_file(const PendingFile& file, std::vector<std::byte>* out) {
  append_number(file.size_bytes, out);
  append(file.digest, out);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t value = 0;
    take(&value, sizeof(value));
    return value;
  }
  std::string text(size_t size) {
    std::string value(size, '\0');
    take(value.data(), size);
    return value;
  }
  PendingFile file() {
    PendingFile value;
    value.size_bytes = number();
    take(value.digest.data(), value.digest.size());
    return value;
  }

 private:
  void take(void* to, size_t size) {
    std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }
  std::span<const std::byte> bytes_;  // as many as a journal has
};

class Settling {
 public:
  Settling(const Location& location, const Publication& publication)
      : location_(location), storage_(*location.storage), publication_(publication) {}

  Status run() {
    SHW_RETURN_IF_ERROR(remove(kMarkerName));
    const Publication& now = publication_;
    SHW_RETURN_IF_ERROR(replace(kCommonName, now.has_common_file ? &now.common : nullptr));
    SHW_RETURN_IF_ERROR(replace(kIntegrityName, now.has_integrity ? &now.integrity : nullptr));
    SHW_RETURN_IF_ERROR(replace(torch_dcp::kIndexName, &now.index));
    const std::string_view marker = marker_text({now.has_common_file});
    SHW_RETURN_IF_ERROR(put(kMarkerName, std::as_bytes(std::span(marker))));
    SHW_RETURN_IF_ERROR(remove(kJournalName));
    remove_copies();
    return {};
  }

 private:
  std::string key_of(std::string_view name) const {
    return storage::join_key(location_.prefix, name);
  }

  Status sync_names() const {
    return publication_.durable ? torch_dcp::sync_names(location_) : Status();
  }

  Status remove(std::string_view name) const {
    SHW_RETURN_IF_ERROR(storage_.remove(key_of(name)));
    return sync_names();
  }

  Status replace(std::string_view name, const PendingFile* by) const {
    if (by == nullptr) return remove(name);
    const std::string pending = pending_name(name, publication_.generation);
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                         storage::read_all(storage_, key_of(pending), by->size_bytes));
    if (pending_file(bytes) != *by) {
      return data_loss(fmt::format("file '{}' is not what was written to it", pending))
          .with_detail("file", pending);
    }
    return put(name, bytes);
  }

  Status put(std::string_view name, std::span<const std::byte> bytes) const {
    storage::OpenOptions options;
    options.file_mode = publication_.file_mode;
    options.durable = publication_.durable;
    options.temporary_suffix = fmt::format("{}.put", publication_.generation);
    return storage::put_in_place(storage_, key_of(name), bytes, std::move(options));
  }

  // What stays goes with the next save.
  void remove_copies() const {
    for (const std::string_view name : {torch_dcp::kIndexName, kCommonName, kIntegrityName})
      static_cast<void>(storage_.remove(key_of(pending_name(name, publication_.generation))));
  }

  const Location& location_;
  storage::Storage& storage_;
  const Publication& publication_;
};

}  // namespace

PendingFile pending_file(std::span<const std::byte> bytes) {
  return {bytes.size(), integrity::xxh3_128(bytes)};
}

std::vector<std::byte> encode_publication(const Publication& publication) {
  std::vector<std::byte> out;
  append(std::as_bytes(std::span(kMagic)), &out);
  append(std::as_bytes(std::span(publication.generation)), &out);
  append_number((publication.has_common_file ? kCommonFlag : 0) |
                    (publication.has_integrity ? kIntegrityFlag : 0) |
                    (publication.durable ? kDurableFlag : 0),
                &out);
  append_number(publication.file_mode, &out);
  append_file(publication.index, &out);
  append_file(publication.common, &out);
  append_file(publication.integrity, &out);
  append(integrity::xxh3_128(out), &out);
  return out;
}

Result<Publication> decode_publication(std::span<const std::byte> bytes) {
  if (bytes.size() != kJournalBytes)
    return damaged(fmt::format("has {} bytes instead of {}", bytes.size(), kJournalBytes));
  const Digest128 sum = integrity::xxh3_128(bytes.first(kJournalBytes - sizeof(Digest128)));
  if (std::memcmp(sum.data(), bytes.last(sizeof(Digest128)).data(), sizeof(Digest128)) != 0)
    return damaged("is damaged");
  Reader reader(bytes);
  if (reader.text(kMagic.size()) != kMagic) return damaged("is no journal of this version");
  Publication publication;
  publication.generation = reader.text(kGenerationDigits);
  const uint64_t flags = reader.number();
  const uint64_t mode = reader.number();
  publication.index = reader.file();
  publication.common = reader.file();
  publication.integrity = reader.file();
  publication.has_common_file = (flags & kCommonFlag) != 0;
  publication.has_integrity = (flags & kIntegrityFlag) != 0;
  publication.durable = (flags & kDurableFlag) != 0;
  publication.file_mode = static_cast<uint32_t>(mode);
  if (!is_generation_id(publication.generation) || mode > 07777 ||
      flags > (kCommonFlag | kIntegrityFlag | kDurableFlag) ||
      publication.index.size_bytes > torch_dcp::kMaxIndexBytes ||
      publication.common.size_bytes > 2 * kMaxCommonBytes ||
      publication.integrity.size_bytes > kMaxIntegrityBytes)
    return damaged("says what no save says");
  return publication;
}

std::string pending_name(std::string_view name, std::string_view generation) {
  return fmt::format("{}.{}", name, generation);
}

std::string_view generation_of_file(std::string_view name) {
  for (const std::string_view of : {kCommonName, kIntegrityName, kMarkerName, kJournalName}) {
    if (!name.starts_with(of) || name.substr(of.size(), 1) != ".") continue;
    const std::string_view rest = name.substr(of.size() + 1);
    const std::string_view generation = rest.substr(0, kGenerationDigits);
    const bool ends = rest.size() <= kGenerationDigits || rest[kGenerationDigits] == '.';
    if (ends && is_generation_id(generation)) return generation;
  }
  return torch_dcp::generation_of_file(name);
}

Result<std::vector<std::byte>> read_journal(const Location& location) {
  auto bytes = storage::read_all(*location.storage,
                                 storage::join_key(location.prefix, kJournalName), kJournalBytes);
  if (bytes.status().code() == StatusCode::kNotFound) return std::vector<std::byte>();
  if (bytes.status().code() == StatusCode::kResourceExhausted)
    return damaged(fmt::format("has more than {} bytes", kJournalBytes));
  if (bytes.ok() && bytes->empty()) return damaged("is empty");
  return bytes;
}

Result<std::optional<Publication>> read_publication(const Location& location) {
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_journal(location));
  if (bytes.empty()) return std::optional<Publication>();
  SHW_ASSIGN_OR_RETURN(Publication publication, decode_publication(bytes));
  return std::optional(std::move(publication));
}

Status settle(const Location& location) {
  SHW_ASSIGN_OR_RETURN(const auto publication, read_publication(location));
  if (!publication.has_value()) return {};
  return Settling(location, *publication).run();
}

}  // namespace shardwright::format::megatron
