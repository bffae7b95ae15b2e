// SPDX-License-Identifier: Apache-2.0
//
// Plans to plan buffers. Sizes are bounded before a builder is made, because FlatBuffers cannot
// report that one outgrew its limit.
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/records.h"
#include "core/plan/wire/vectors_internal.h"

namespace shardwright::plan {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;
using internal::kFixedBytes;
using internal::records_of;
using internal::text_of;

static_assert(sizeof(wire::WriteRecord) == sizeof(WriteItem));

template <typename Text>
uint64_t names_bytes(const std::vector<Text>& names) {
  uint64_t bytes = 64;
  for (const Text& name : names) bytes += std::string_view(name).size() + sizeof(uint64_t);
  return bytes;
}

template <typename Text>
Offset<wire::NameList> name_list(FlatBufferBuilder* builder, const std::vector<Text>& names) {
  if (names.empty()) return 0;
  std::string texts;
  std::vector<uint64_t> ends;
  ends.reserve(names.size());
  for (const Text& name : names) {
    texts += std::string_view(name);
    ends.push_back(texts.size());
  }
  const auto texts_offset = text_of(builder, texts);
  return wire::CreateNameList(*builder, texts_offset, builder->CreateVector(ends));
}

}  // namespace

uint64_t internal::listing_wire_bytes(const ListingView& listing) {
  return 128 + listing.object_begins.size_bytes() + listing.order.size_bytes() +
         listing.secondary.size_bytes() + listing.attributes.size_bytes() +
         listing.attribute_ends.size_bytes();
}

Offset<wire::NameList> internal::attributes_of(FlatBufferBuilder* builder, const Listing& listing) {
  if (listing.attribute_ends.empty()) return 0;
  const auto texts = bytes_of(builder, listing.attributes.data(), listing.attributes.size());
  return wire::CreateNameList(*builder, texts, builder->CreateVector(listing.attribute_ends));
}

Result<Bytes> encode(const WriteList& list) {
  const uint64_t size =
      kFixedBytes + list.generation.size() + sizeof(WriteItem) * list.items.size();
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the write list"));
  FlatBufferBuilder builder(size);
  const auto generation = text_of(&builder, list.generation);
  const auto items = records_of<wire::WriteRecord>(&builder, list.items);
  const wire::Digest plan_digest = wire::encode_digest(list.plan_digest);
  const auto body =
      wire::CreateWriteList(builder, list.rank, list.world_size, generation, &plan_digest, items);
  return internal::finish(&builder, wire::PlanBufferKind::WriteList,
                          [&](auto* root) { root->add_write_list(body); });
}

Result<Bytes> encode(const LoadPlan& plan) {
  std::vector<wire::ReadRecord> reads;
  std::vector<wire::ExtentPair> boxes;
  reads.reserve(plan.reads.size());
  for (size_t i = 0; i < plan.reads.size(); ++i) {
    const ReadKey& read = plan.reads.key(i);
    const std::span<const int64_t> offsets = plan.reads.offsets(i);
    const std::span<const int64_t> sizes = plan.reads.sizes(i);
    reads.emplace_back(read.entry, read.piece, read.chunk, static_cast<uint32_t>(sizes.size()), 0U);
    for (size_t d = 0; d < sizes.size(); ++d) {
      boxes.emplace_back(static_cast<uint64_t>(offsets[d]), static_cast<uint64_t>(sizes[d]));
    }
  }
  std::vector<wire::ObjectReadRecord> objects;
  objects.reserve(plan.objects.size());
  for (const ObjectRead& read : plan.objects) objects.emplace_back(read.entry, 0U, read.object);
  std::vector<wire::CastRecord> casts;
  casts.reserve(plan.casts.size());
  for (const CastNote& note : plan.casts) {
    casts.emplace_back(note.entry, static_cast<uint8_t>(note.stored),
                       static_cast<uint8_t>(note.wanted), static_cast<uint16_t>(0));
  }
  std::vector<wire::ShapeRecord> shapes;
  shapes.reserve(plan.shapes.size());
  for (const ShapeNote& note : plan.shapes) shapes.emplace_back(note.entry, 0U, note.tensor);
  const uint64_t size =
      kFixedBytes + plan.generation.size() + sizeof(wire::ReadRecord) * reads.size() +
      sizeof(wire::ExtentPair) * boxes.size() + sizeof(wire::ObjectReadRecord) * objects.size() +
      sizeof(wire::CastRecord) * casts.size() + sizeof(wire::ShapeRecord) * shapes.size() +
      names_bytes(plan.loaded) + names_bytes(plan.missing) + names_bytes(plan.unexpected);
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the load plan"));
  FlatBufferBuilder builder(size);
  const auto generation = text_of(&builder, plan.generation);
  const auto reads_offset = builder.CreateVectorOfStructs(reads);
  const auto boxes_offset = builder.CreateVectorOfStructs(boxes);
  const auto objects_offset = builder.CreateVectorOfStructs(objects);
  const auto loaded = name_list(&builder, plan.loaded);
  const auto missing = name_list(&builder, plan.missing);
  const auto unexpected = name_list(&builder, plan.unexpected);
  const auto casts_offset = builder.CreateVectorOfStructs(casts);
  Offset<Vector<const wire::ShapeRecord*>> shapes_offset = 0;
  if (!shapes.empty()) shapes_offset = builder.CreateVectorOfStructs(shapes);
  const auto body =
      wire::CreateLoad(builder, plan.rank, generation, reads_offset, boxes_offset, objects_offset,
                       loaded, missing, unexpected, casts_offset, shapes_offset);
  return internal::finish(&builder, wire::PlanBufferKind::Load,
                          [&](auto* root) { root->add_load(body); });
}

Result<Bytes> encode(const WriteResult& result) {
  const uint64_t size = kFixedBytes + result.generation.size();
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the write result"));
  FlatBufferBuilder builder(size);
  const auto generation = text_of(&builder, result.generation);
  const wire::Digest plan_digest = wire::encode_digest(result.plan_digest);
  const wire::Digest index_digest = wire::encode_digest(result.index_digest);
  const auto body = wire::CreateWriteResult(
      builder, result.rank, generation, &plan_digest, result.has_file, result.file_bytes,
      result.index_position, result.index_bytes, &index_digest, result.payload_bytes,
      !result.directory_sync_supported);
  return internal::finish(&builder, wire::PlanBufferKind::WriteResult,
                          [&](auto* root) { root->add_write_result(body); });
}

uint64_t merged_save_wire_bytes(const GlobalSavePlan& plan) {
  return kFixedBytes + catalog_wire_bytes(plan.catalog) + plan.generation.size() +
         internal::listing_wire_bytes(view_of(plan.listing));
}

Result<std::span<const std::byte>> internal::encode_into(FlatBufferBuilder* builder,
                                                         const GlobalSavePlan& plan) {
  SHW_RETURN_IF_ERROR(check_wire_size(merged_save_wire_bytes(plan), "the merged plan"));
  builder->Clear();
  const Offset<wire::Catalog> catalog(encode_catalog(builder, plan.catalog));
  const auto generation = text_of(builder, plan.generation);
  const auto attributes = attributes_of(builder, plan.listing);
  const auto object_begins = numbers_of(builder, plan.listing.object_begins);
  const wire::Digest plan_digest = wire::encode_digest(plan.plan_digest);
  const auto body =
      wire::CreateMergedSave(*builder, generation, plan.generation.empty() ? nullptr : &plan_digest,
                             catalog, attributes, object_begins);
  return finish_in_place(builder, wire::PlanBufferKind::MergedSave,
                         [&](auto* root) { root->add_merged_save(body); });
}

Result<Bytes> encode(const GlobalSavePlan& plan) {
  FlatBufferBuilder builder(merged_save_wire_bytes(plan));
  SHW_ASSIGN_OR_RETURN(const auto bytes, internal::encode_into(&builder, plan));
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace shardwright::plan
