// SPDX-License-Identifier: Apache-2.0
//
// What all encoders of plan buffers share: columns of values as vectors (none for an empty column;
// the other way round: columns_internal.h), and the buffer around a body.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <flatbuffers/flatbuffer_builder.h>

#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan::internal {

// Of the tables of one plan, their field tables, vector lengths and padding.
inline constexpr uint64_t kFixedBytes = 1024;

// Structs of equal records by one copy.
template <typename Wire, typename Record>
flatbuffers::Offset<flatbuffers::Vector<const Wire*>> records_of(
    flatbuffers::FlatBufferBuilder* builder, const std::vector<Record>& from) {
  static_assert(sizeof(Wire) == sizeof(Record));
  if (from.empty()) return 0;
  Wire* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(from.size(), &out);
  std::memcpy(static_cast<void*>(out), from.data(), from.size() * sizeof(Record));
  return offset;
}

template <typename Number>
flatbuffers::Offset<flatbuffers::Vector<Number>> numbers_of(flatbuffers::FlatBufferBuilder* builder,
                                                            const std::vector<Number>& from) {
  return from.empty() ? 0 : builder->CreateVector(from);
}

inline flatbuffers::Offset<flatbuffers::Vector<uint8_t>> bytes_of(
    flatbuffers::FlatBufferBuilder* builder, const void* data, size_t size) {
  return size == 0 ? 0 : builder->CreateVector(static_cast<const uint8_t*>(data), size);
}

inline flatbuffers::Offset<flatbuffers::Vector<uint8_t>> text_of(
    flatbuffers::FlatBufferBuilder* builder, std::string_view text) {
  return bytes_of(builder, text.data(), text.size());
}

// The host's own bytes of each entry.
flatbuffers::Offset<wire::NameList> attributes_of(flatbuffers::FlatBufferBuilder* builder,
                                                  const Listing& listing);
// Upper bound of the bytes of a listing.
uint64_t listing_wire_bytes(const ListingView& listing);

// Finishes a buffer around the body that add_body sets; the bytes are the builder's.
template <typename AddBody>
std::span<const std::byte> finish_in_place(flatbuffers::FlatBufferBuilder* builder,
                                           wire::PlanBufferKind kind, const AddBody& add_body) {
  wire::PlanBufferBuilder root(*builder);
  root.add_schema_major(kPlanSchemaMajor);
  root.add_schema_minor(kPlanSchemaMinor);
  root.add_minimum_reader_minor(kPlanSchemaMinor);
  root.add_kind(kind);
  add_body(&root);
  builder->FinishSizePrefixed(root.Finish(), kPlanIdentifier);
  return {reinterpret_cast<const std::byte*>(builder->GetBufferPointer()), builder->GetSize()};
}

// The same as bytes of their own.
template <typename AddBody>
Bytes finish(flatbuffers::FlatBufferBuilder* builder, wire::PlanBufferKind kind,
             const AddBody& add_body) {
  const auto bytes = finish_in_place(builder, kind, add_body);
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace shardwright::plan::internal
