// SPDX-License-Identifier: Apache-2.0
//
// Catalog to and from its FlatBuffers table (catalog.fbs). Shared by plan buffers, manifests and indexes; only
// core/plan/wire and core/format/native include it. Names of FlatBuffers types stay in the .cc files of those folders.
#pragma once

#include <cstddef>
#include <span>

#include "core/plan/catalog.h"

namespace flatbuffers {
class FlatBufferBuilder;
}
namespace shardwright::wire {
struct Catalog;  // generated table
}

namespace shardwright::plan {

// Offset of the table inside the builder (flatbuffers::Offset<wire::Catalog>::o).
uint32_t encode_catalog(flatbuffers::FlatBufferBuilder* builder, const Catalog& catalog);
// Copies the verified table and proves it by check_catalog.
Result<Catalog> decode_catalog(const wire::Catalog* table);

// The doors in front of every size-prefixed buffer: length, prefix, four-character identifier. aligned receives a
// copy when the address is not a multiple of 8, and the returned span points into it or into buffer.
Result<std::span<const std::byte>> check_buffer_frame(std::span<const std::byte> buffer, const char* identifier,
                                                      std::vector<std::byte>* aligned);

}  // namespace shardwright::plan
