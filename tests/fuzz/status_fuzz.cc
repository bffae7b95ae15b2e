// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the status that a peer sent. What is read travels again: written and read it stays
// the same, within the bounds; and no bytes make a success.
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/collective/status_bytes_internal.h"

using shardwright::Status;

namespace {

void check(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shardwright::collective::internal;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const Status status = decode_status(bytes);
  check(!status.ok() && status_code_name(status.code()) != "UNRECOGNISED");
  const std::vector<std::byte> written = encode_status(status);
  check(!written.empty() && written.size() <= kMaxStatusBytes);
  const Status again = decode_status(written);
  check(again.code() == status.code() && again.retryable() == status.retryable());
  // Long texts are cut the first time only.
  check(encode_status(again) == written);
  return 0;
}
