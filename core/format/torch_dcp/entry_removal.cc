// SPDX-License-Identifier: Apache-2.0
//
//   1  the index without the entries takes the place of the old one, durable
//   2  the digests of the old one, which are of that one alone, become those of the new one
//   3  files go that nothing lies in any more
//
// Cut off behind 1 there are files that nothing names, and digests that no reader takes for those
// of the index; behind 2 only the files.
#include "core/format/torch_dcp/entry_removal.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/find_sidecar.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/storage/storage.h"

namespace shardwright::format::torch_dcp {
namespace {

// Digests of the index, by the name of their file; nullopt where it has none.
struct KeptDigests {
  std::string name;
  DigestSidecar digests;
};
Result<std::optional<KeptDigests>> digests_of(const Location& location,
                                              std::span<const std::byte> index) {
  SHW_ASSIGN_OR_RETURN(const auto found, find_sidecar(location, index, nullptr));
  if (!found.has_value()) return std::optional<KeptDigests>();
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                       storage::read_all(*location.storage, found->key, kMaxSidecarBytes));
  if (bytes.size() < kSidecarHeaderBytes) return std::optional<KeptDigests>();
  auto digests = decode_sidecar(found->header, std::span(bytes).subspan(kSidecarHeaderBytes));
  // Those that are damaged are of no use to the index before either.
  if (!digests.ok()) return std::optional<KeptDigests>();
  return std::optional(
      KeptDigests{found->key.substr(found->key.rfind('/') + 1), std::move(*digests)});
}

}  // namespace

Status put_in_place(const Location& location, std::string_view name,
                    std::span<const std::byte> bytes) {
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreate;
  options.durable = true;
  options.expected_bytes = bytes.size();
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                       location.storage->open(storage::join_key(location.prefix, name), options));
  SHW_RETURN_IF_ERROR(object->write_at(0, bytes));
  SHW_RETURN_IF_ERROR(object->sync());
  SHW_RETURN_IF_ERROR(object->commit(storage::CommitCondition::kNone, {}));
  SHW_RETURN_IF_ERROR(object->close());
  bool supported = false;
  return location.prefix.empty() ? Status()
                                 : location.storage->sync_prefix(location.prefix, &supported);
}

Result<PlannedRemoval> plan_removal(const Location& location, const EntryNameRule& goes) {
  const std::string key = storage::join_key(location.prefix, kIndexName);
  PlannedRemoval planned;
  SHW_ASSIGN_OR_RETURN(planned.before, storage::read_all(*location.storage, key, kMaxIndexBytes));
  SHW_ASSIGN_OR_RETURN(planned.index, index_without(planned.before, goes));
  for (const std::string& file : planned.index.files) {
    const auto stat = location.storage->stat(storage::join_key(location.prefix, file));
    if (stat.status().code() == StatusCode::kNotFound) continue;
    SHW_RETURN_IF_ERROR(stat.status());
    planned.removal.files.push_back({file, stat->size_bytes});
  }
  planned.removal.entries = std::move(planned.index.entries);
  return planned;
}

Status carry_out(const Location& location, const PlannedRemoval& planned) {
  SHW_ASSIGN_OR_RETURN(auto kept, digests_of(location, planned.before));
  const auto after = std::as_bytes(std::span(planned.index.bytes));
  SHW_RETURN_IF_ERROR(put_in_place(location, kIndexName, after));
  if (kept.has_value()) {
    const DigestSidecar left = sidecar_without(std::move(kept->digests), planned.index);
    SHW_RETURN_IF_ERROR(put_in_place(location, kept->name, encode_sidecar(left, after)));
  }
  for (const EntryRemoval::Part& file : planned.removal.files)
    SHW_RETURN_IF_ERROR(location.storage->remove(storage::join_key(location.prefix, file.name)));
  return {};
}

Result<EntryRemoval> remove_entries(const Location& location, const EntryNameRule& goes,
                                    bool apply) {
  SHW_ASSIGN_OR_RETURN(PlannedRemoval planned, plan_removal(location, goes));
  if (apply && !planned.removal.entries.empty()) SHW_RETURN_IF_ERROR(carry_out(location, planned));
  return std::move(planned.removal);
}

}  // namespace shardwright::format::torch_dcp
