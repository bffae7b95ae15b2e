// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the index of a directory of safetensors files, as the sharding text of one, and as
// what another rank read of all of them. An index that decodes names files inside its directory.
#include <string_view>

#include "core/format/format.h"
#include "core/format/safetensors/hf_index.h"
#include "core/format/safetensors/safetensors_checkpoint.h"
#include "core/storage/storage.h"

namespace {

using namespace shardwright::format;  // NOLINT: a fuzz target is one file

void check_index(std::string_view text) {
  const auto index = safetensors::decode_index(text, "i");
  if (!index.ok()) return;
  for (const std::string& file : index->files) {
    if (!shardwright::storage::check_key(file).ok()) __builtin_trap();
  }
  for (const auto& [tensor, file] : index->file_of) {
    if (file >= index->files.size()) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_index(text);
  static_cast<void>(safetensors::decode_sharding(text, "f"));
  const auto opened = safetensors::open_shared({nullptr, "p"}, std::as_bytes(std::span(text)));
  if (!opened.ok()) return 0;
  for (uint64_t chunk = 0; chunk < (*opened)->catalog().chunk_count(); ++chunk) {
    const auto extent = (*opened)->chunk_extent(chunk);
    const uint64_t file_bytes = (*opened)->files()[extent->file].size_bytes;
    if (extent->offset > file_bytes || extent->size_bytes > file_bytes - extent->offset)
      __builtin_trap();
  }
  return 0;
}
