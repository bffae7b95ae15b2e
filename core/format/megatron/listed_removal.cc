// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/listed_removal.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format/megatron/listed_digests.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/storage/storage.h"

namespace shardwright::format::megatron {
namespace {

Result<std::string> listed_text(const Location& location) {
  const auto bytes = storage::read_all(
      *location.storage, storage::join_key(location.prefix, kIntegrityName), kMaxIntegrityBytes);
  if (bytes.status().code() == StatusCode::kNotFound) return std::string();
  SHW_RETURN_IF_ERROR(bytes.status());
  SHW_RETURN_IF_ERROR(decode_integrity(*bytes).status());
  return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
}

Status withdraw_list(const Location& location) {
  SHW_RETURN_IF_ERROR(location.storage->remove(storage::join_key(location.prefix, kIntegrityName)));
  return torch_dcp::sync_names(location);
}

Status restore_list(const Location& location, const torch_dcp::RemovalList& removal,
                    std::span<const std::string> gone) {
  SHW_ASSIGN_OR_RETURN(auto listed, decode_integrity(std::as_bytes(std::span(removal.kept))));
  for (const std::string& file : gone) listed.erase(file);
  const std::string_view both[] = {torch_dcp::kIndexName, removal.digests};
  for (const std::string_view changed : both) {
    const auto listed_as = listed.find(std::string(changed));
    if (listed_as == listed.end()) continue;
    Result<std::string> digest = sha256_of(location, changed);
    if (digest.status().code() == StatusCode::kNotFound) {
      listed.erase(listed_as);
      continue;
    }
    SHW_RETURN_IF_ERROR(digest.status());
    listed_as->second = std::move(*digest);
  }
  const std::string text = encode_integrity(listed);
  return torch_dcp::put_in_place(location, kIntegrityName, std::as_bytes(std::span(text)));
}

}  // namespace

torch_dcp::AroundRemoval listed_digests_of_removal(const Location& location) {
  return {.keep = [&location] { return listed_text(location); },
          .withdraw = [&location] { return withdraw_list(location); },
          .restore =
              [&location](const torch_dcp::RemovalList& list, std::span<const std::string> gone) {
                return restore_list(location, list, gone);
              }};
}

}  // namespace shardwright::format::megatron
