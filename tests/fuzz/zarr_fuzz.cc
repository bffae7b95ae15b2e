// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the header of an array of zarr, as the name of a chunk of it, and as those of a file
// of a sharded object. A header that is taken has chunks that tile its shape, and one name each.
#include <algorithm>
#include <string>
#include <string_view>

#include "core/format/megatron/shard_file.h"
#include "core/format/zarr/chunk_grid.h"

namespace {

using namespace shardwright;          // NOLINT: a fuzz target is one file
using namespace shardwright::format;  // NOLINT: a fuzz target is one file

constexpr uint64_t kMaxChunks = 1000;

void take_chunks(const zarr::ArrayHeader& header) {
  const zarr::ChunkGrid grid(header);
  if (!header.fill.empty() &&
      header.fill.size() != static_cast<size_t>(dtype_bits(header.dtype) / 8))
    __builtin_trap();
  int64_t elements = 0;
  for (uint64_t number = 0; number < std::min(grid.count(), kMaxChunks); ++number) {
    const Box box = grid.box_of(number);
    if (!check_box(box, header.shape).ok() || box_is_empty(box)) __builtin_trap();
    const auto index = grid.index_of(grid.name_of(number));
    if (!index.has_value() || grid.number_of(*index) != number) __builtin_trap();
    elements += box_element_count(box);
  }
  if (grid.count() <= kMaxChunks && elements != element_count_of(header.shape)) __builtin_trap();
}

void take_name(const zarr::ArrayHeader& header, std::string_view name) {
  const zarr::ChunkGrid grid(header);
  const auto index = grid.index_of(name);
  if (!index.has_value()) return;
  const auto number = grid.number_of(*index);
  if (number.has_value() && grid.name_of(*number) != name) __builtin_trap();
}

void take_shard_name(std::string_view path) {
  const auto name = megatron::object_of_file(path);
  if (!name.ok() || !name->has_value()) return;
  const ObjectKey& object = **name;
  if (object.shape[object.shape.size() - 1] == -1) return;
  const auto text = format_object_key(object.key, object.offsets, object.shape);
  if (!text.ok() || *text + ".pt" != path) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A name may stand behind the header, after a NUL.
  const size_t end = std::min(text.find('\0'), size);
  const auto header = zarr::decode_header(input.first(end), "a");
  if (header.ok()) {
    take_chunks(*header);
    if (end < size) take_name(*header, text.substr(end + 1));
  }
  take_shard_name(text);
  static_cast<void>(megatron::listed_archive(archive::bytes_of(input, 0, "f")));
  return 0;
}
