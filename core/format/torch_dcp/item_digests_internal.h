// SPDX-License-Identifier: Apache-2.0
//
// ItemDigests: what the digest sidecar of an opened index says of its items. Without a sidecar it
// says nothing and every block passes. Immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/result.h"
#include "core/format/torch_dcp/byte_items.h"
#include "core/format/torch_dcp/contents_internal.h"
#include "core/format/torch_dcp/digest_sidecar.h"

namespace shardwright::format::torch_dcp::internal {

// DATA_LOSS for a sidecar that is damaged, or has other items than the index.
Status check_sidecar(std::span<const std::byte> sidecar, const DcpIndex& index);
// Compares items of objects with their digests; null where there are none.
CheckItem check_items(const Opened& opened, const DcpIndex& index);

class ItemDigests {
 public:
  ItemDigests() = default;
  // The sidecar passed check_sidecar.
  ItemDigests(const Opened& opened, const Contents& contents);

  bool has_any() const { return sidecar_.has_value() && !sidecar_->digests.empty(); }
  std::string_view generation() const;
  int64_t created_unix_ns() const { return sidecar_.has_value() ? sidecar_->created_unix_ns : 0; }
  // Where the elements of a chunk of the catalog begin in their file; nullopt: its item tells.
  std::optional<uint64_t> payload_offset(size_t chunk) const;
  // DATA_LOSS naming tensor or object, place, and both digests.
  Status check_chunk(const Contents& contents, size_t chunk, uint64_t block,
                     std::span<const std::byte> bytes) const;
  Status check_object(const Contents& contents, size_t object, uint64_t block,
                      std::span<const std::byte> bytes) const;

 private:
  std::optional<DigestSidecar> sidecar_;
  std::vector<uint64_t> numbers_;   // by chunk of the catalog: its item in the sidecar
  std::vector<uint64_t> payloads_;  // by chunk: where they begin; kUnknown
};

}  // namespace shardwright::format::torch_dcp::internal
