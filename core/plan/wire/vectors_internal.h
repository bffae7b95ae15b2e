// SPDX-License-Identifier: Apache-2.0
//
// Columns of values as vectors of buffers (none for an empty column) and back, and the buffer
// around the body of a plan. The FlatBuffers verifier (25.12) checks the alignment of a vector's
// length, which is 4, and not that of its elements: in a damaged buffer elements of 8 bytes may lie
// at any multiple of 4, and reading them in place would be undefined. So columns are copied, or
// read in place where they happen to be aligned.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <flatbuffers/flatbuffer_builder.h>

#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/records.h"

namespace shardwright::plan::internal {

// Of the tables of one plan, their field tables, vector lengths and padding.
inline constexpr uint64_t kFixedBytes = 1024;

// Structs of equal records by one copy. from: contiguous.
template <typename Wire>
flatbuffers::Offset<flatbuffers::Vector<const Wire*>> records_of(
    flatbuffers::FlatBufferBuilder* builder, const auto& from) {
  static_assert(sizeof(Wire) == sizeof(from[0]));
  if (from.empty()) return 0;
  Wire* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(from.size(), &out);
  std::memcpy(static_cast<void*>(out), from.data(), from.size() * sizeof(Wire));
  return offset;
}

// Structs of other records, also of none: convert makes each.
template <typename Wire, typename Record, typename Convert>
flatbuffers::Offset<flatbuffers::Vector<const Wire*>> converted(
    flatbuffers::FlatBufferBuilder* builder, const std::vector<Record>& from,
    const Convert& convert) {
  Wire* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(from.size(), &out);
  for (const Record& record : from) *out++ = convert(record);
  return offset;
}

// Number: of the vector; those of the column have as many bytes.
template <typename Number>
flatbuffers::Offset<flatbuffers::Vector<Number>> numbers_of(flatbuffers::FlatBufferBuilder* builder,
                                                            const auto& from) {
  static_assert(sizeof(Number) == sizeof(from[0]));
  if (from.empty()) return 0;
  return builder->CreateVector(reinterpret_cast<const Number*>(from.data()), from.size());
}

inline flatbuffers::Offset<wire::NameList> attributes_of(flatbuffers::FlatBufferBuilder* builder,
                                                         const ListingView& listing) {
  if (listing.attribute_ends.empty()) return 0;
  const auto texts = numbers_of<uint8_t>(builder, listing.attributes);
  return wire::CreateNameList(*builder, texts,
                              numbers_of<uint64_t>(builder, listing.attribute_ends));
}

uint64_t bytes_of(const auto&... columns) {
  return (uint64_t{0} + ... + (columns.size() * sizeof(columns[0])));
}

// Finishes the buffer around a body; the bytes are the builder's.
template <typename Table>
std::span<const std::byte> finish(flatbuffers::FlatBufferBuilder* builder,
                                  flatbuffers::Offset<Table> body) {
  constexpr size_t kKind = index_in<const Table*, Body> + 1;
  constexpr size_t kFieldBytes = sizeof(flatbuffers::voffset_t);
  static_assert(wire::PlanBuffer::VT_EXCHANGE ==
                wire::PlanBuffer::VT_KIND + std::variant_size_v<Body> * kFieldBytes);
  wire::PlanBufferBuilder root(*builder);
  root.add_schema_major(kPlanSchemaMajor);
  root.add_schema_minor(kPlanSchemaMinor);
  root.add_minimum_reader_minor(kPlanSchemaMinor);
  root.add_kind(static_cast<wire::PlanBufferKind>(kKind));
  builder->AddOffset(wire::PlanBuffer::VT_KIND + kKind * kFieldBytes, body);
  builder->FinishSizePrefixed(root.Finish(), kPlanIdentifier);
  return {reinterpret_cast<const std::byte*>(builder->GetBufferPointer()), builder->GetSize()};
}

// The buffer around the body that make_body(builder) adds. bytes: of its columns, at most.
template <typename MakeBody>
Result<Bytes> encode_body(uint64_t bytes, std::string_view what, const MakeBody& make_body) {
  SHW_RETURN_IF_ERROR(check_wire_size(kFixedBytes + bytes, what));
  flatbuffers::FlatBufferBuilder builder(kFixedBytes + bytes);
  const auto buffer = finish(&builder, make_body(&builder));
  return Bytes(buffer.begin(), buffer.end());
}

// Elements of a vector that may be absent.
template <typename T>
flatbuffers::uoffset_t count_of(const flatbuffers::Vector<T>* vector) {
  return vector == nullptr ? 0 : vector->size();
}

using wire::record_at;

// The elements as values of the same bytes.
template <typename Element, typename T>
std::vector<Element> copy_column(const flatbuffers::Vector<T>* vector) {
  static_assert(std::is_trivially_copyable_v<Element>);
  static_assert(sizeof(Element) == flatbuffers::IndirectHelper<T>::element_stride);
  std::vector<Element> column(count_of(vector));
  if (!column.empty()) {
    std::memcpy(static_cast<void*>(column.data()), vector->Data(), column.size() * sizeof(Element));
  }
  return column;
}

inline std::string copy_text(const flatbuffers::Vector<uint8_t>* bytes) {
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// A plan buffer inside another one, where it lies.
inline std::span<const std::byte> bytes_of_column(const flatbuffers::Vector<uint8_t>* vector) {
  if (vector == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(vector->data()), vector->size()};
}

// The elements where they lie, or a copy that is put into owned where they are not aligned.
template <typename Element, typename T>
std::span<const Element> column_in_place(const flatbuffers::Vector<T>* vector,
                                         std::vector<std::shared_ptr<const void>>* owned) {
  static_assert(std::is_trivially_copyable_v<Element>);
  static_assert(sizeof(Element) == flatbuffers::IndirectHelper<T>::element_stride);
  if (count_of(vector) == 0) return {};
  const auto* data = reinterpret_cast<const Element*>(vector->Data());
  if (reinterpret_cast<uintptr_t>(data) % alignof(Element) == 0) return {data, vector->size()};
  auto copy = std::make_shared<const std::vector<Element>>(copy_column<Element>(vector));
  const std::span<const Element> span = *copy;
  owned->push_back(std::move(copy));
  return span;
}

}  // namespace shardwright::plan::internal
