// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as metadata.json of Megatron, as the journal of a save, and as a journal whose digest
// fits. What is taken says what it was made of.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/publication.h"
#include "core/integrity/digest.h"

namespace {

using namespace shardwright;                    // NOLINT: a fuzz target is one file
using namespace shardwright::format::megatron;  // NOLINT: a fuzz target is one file

void take_marker(std::span<const std::byte> bytes) {
  const auto marker = decode_marker(bytes);
  if (!marker.ok() || !check_readable(*marker).ok()) return;
  const std::string_view text = marker_text(*marker);
  const auto again = decode_marker(std::as_bytes(std::span(text)));
  if (!again.ok() || again->has_common_file != marker->has_common_file) __builtin_trap();
}

void take_journal(std::span<const std::byte> bytes) {
  const auto publication = decode_publication(bytes);
  if (!publication.ok()) return;
  const std::vector<std::byte> again = encode_publication(*publication);
  if (!std::ranges::equal(again, bytes)) __builtin_trap();
  const std::string name = pending_name("common.pt", publication->generation);
  if (generation_of_file(name) != publication->generation) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  take_marker(input);
  take_journal(input);
  std::vector<std::byte> sealed(kJournalBytes);
  const size_t body = sealed.size() - sizeof(Digest128);
  std::ranges::copy(std::as_bytes(std::span(std::string_view("SHWPUBL1"))), sealed.begin());
  if (size > 0) std::memcpy(sealed.data() + 8, data, std::min(size, body - 8));
  std::ranges::copy(integrity::xxh3_128(std::span(sealed).first(body)), sealed.end() - 16);
  take_journal(sealed);
  return 0;
}
