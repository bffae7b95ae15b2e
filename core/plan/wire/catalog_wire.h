// SPDX-License-Identifier: Apache-2.0
//
// Catalog to and from its FlatBuffers table (catalog.fbs). Shared by plan buffers, manifests and
// indexes. Names of FlatBuffers types stay in the .cc files of core/plan/wire and
// core/format/native.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/save_plan.h"

namespace flatbuffers {
template <bool Is64Aware>
class FlatBufferBuilderImpl;
using FlatBufferBuilder = FlatBufferBuilderImpl<false>;
}  // namespace flatbuffers
namespace shardwright::wire {
struct Catalog;  // generated table
}

namespace shardwright::plan {

// Upper bound of the bytes that encode_catalog adds. FlatBuffers cannot report that a buffer
// outgrows 2^31 bytes, so whoever encodes a catalog first passes the sum of its parts to
// check_wire_size.
uint64_t catalog_wire_bytes(const Catalog& catalog);
// RESOURCE_EXHAUSTED naming what when the bytes exceed the limit of a buffer.
Status check_wire_size(uint64_t bytes, std::string_view what);
// Offset of the table inside the builder (flatbuffers::Offset<wire::Catalog>::o).
uint32_t encode_catalog(flatbuffers::FlatBufferBuilder* builder, const Catalog& catalog);
// Copies the verified table without proving its meaning; DATA_LOSS when there is no table or a
// count does not fit.
Result<Catalog> copy_catalog(const wire::Catalog* table);
// copy_catalog, then check_catalog.
Result<Catalog> decode_catalog(const wire::Catalog* table);
// plan_digest: of the catalog alone as a size-prefixed buffer; equal catalogs give equal bytes.
Result<Digest128> catalog_digest(const Catalog& catalog);

// The checks in front of every size-prefixed buffer: length, alignment, prefix, four-character
// identifier. aligned receives a copy when the address is not a multiple of 8, and the returned
// span points into it or into buffer. INVALID_ARGUMENT for what does not carry the identifier,
// DATA_LOSS when only the length prefix is wrong.
Result<std::span<const std::byte>> check_buffer_frame(std::span<const std::byte> buffer,
                                                      const char* identifier,
                                                      std::vector<std::byte>* aligned);

}  // namespace shardwright::plan
