// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/find_sidecar.h"

#include <algorithm>
#include <array>
#include <memory>

#include "core/base/text.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr size_t kMaxLookedAt = 64;  // sidecars, newest first: of saves that were killed

Result<std::vector<storage::ListEntry>> list_sidecars(const Location& location) {
  std::vector<storage::ListEntry> found;
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  SHW_RETURN_IF_ERROR(location.storage->list(
      prefix + std::string(kOwnBeginning), storage::kDelimiter,
      [&](const storage::ListEntry& entry) {
        if (is_digests_file(std::string_view(entry.key).substr(prefix.size())))
          found.push_back(entry);
        return Status();
      }));
  std::ranges::sort(found, std::greater<>(),
                    [](const storage::ListEntry& entry) { return entry.stat.modified_ns; });
  if (found.size() > kMaxLookedAt) found.resize(kMaxLookedAt);
  return found;
}

// Nothing for one that has gone meanwhile, was cut or is damaged.
Result<std::optional<SidecarHeader>> read_header(const Location& location, const std::string& key) {
  const auto object = location.storage->open(key, storage::OpenOptions{});
  std::array<std::byte, kSidecarHeaderBytes> bytes{};
  const Status read = object.ok() ? (*object)->read_at(0, bytes) : object.status();
  if (read.code() == StatusCode::kNotFound || read.code() == StatusCode::kOutOfRange)
    return std::optional<SidecarHeader>();
  SHW_RETURN_IF_ERROR(read);
  return decode_sidecar_header(bytes);
}

}  // namespace

Result<std::optional<FoundSidecar>> find_sidecar(const Location& location,
                                                 std::span<const std::byte> index,
                                                 std::vector<std::string>* notes) {
  SHW_ASSIGN_OR_RETURN(const std::vector<storage::ListEntry> entries, list_sidecars(location));
  if (entries.empty()) return std::optional<FoundSidecar>();
  std::optional<Digest128> digest;
  for (const storage::ListEntry& entry : entries) {
    SHW_ASSIGN_OR_RETURN(std::optional<SidecarHeader> header, read_header(location, entry.key));
    if (!header.has_value() || header->index_bytes != index.size()) continue;
    if (!digest.has_value()) digest = integrity::xxh3_128(index);
    if (header->index_digest == *digest)
      return std::optional(FoundSidecar{std::move(*header), entry.key});
  }
  if (notes != nullptr) {
    notes->emplace_back(
        "the digests that lie here are of another index or damaged, so nothing that is read is "
        "compared with any");
  }
  return std::optional<FoundSidecar>();
}

}  // namespace shardwright::format::torch_dcp
