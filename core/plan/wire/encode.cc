// SPDX-License-Identifier: Apache-2.0
//
// Plans to plan buffers. Sizes are bounded before a builder is made, because FlatBuffers cannot
// report that one outgrew its limit.
#include <cstring>

#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/plan_encoder.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/records.h"

namespace shardwright::plan {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;

constexpr uint64_t kFixedBytes =
    1024;  // tables, their field tables, vector lengths and padding of one plan

static_assert(sizeof(wire::WriteRecord) == sizeof(WriteItem));

Offset<Vector<uint8_t>> text_bytes(FlatBufferBuilder* builder, std::string_view text) {
  if (text.empty()) return 0;
  return builder->CreateVector(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

Offset<Vector<const wire::Digest*>> digests(FlatBufferBuilder* builder,
                                            const std::vector<Digest128>& from) {
  if (from.empty()) return 0;
  wire::Digest* out = nullptr;
  const auto offset = builder->CreateUninitializedVectorOfStructs(from.size(), &out);
  std::memcpy(static_cast<void*>(out), from.data(), from.size() * sizeof(wire::Digest));
  return offset;
}

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
  const auto texts_offset = text_bytes(builder, texts);
  return wire::CreateNameList(*builder, texts_offset, builder->CreateVector(ends));
}

// The host's own bytes of each entry.
Offset<wire::NameList> attributes_of(FlatBufferBuilder* builder, const Listing& listing) {
  if (listing.attribute_ends.empty()) return 0;
  const auto texts = text_bytes(builder, {listing.attributes.data(), listing.attributes.size()});
  return wire::CreateNameList(*builder, texts, builder->CreateVector(listing.attribute_ends));
}

template <typename Number>
Offset<Vector<Number>> numbers_of(FlatBufferBuilder* builder, const std::vector<Number>& from) {
  return from.empty() ? 0 : builder->CreateVector(from);
}

uint64_t listing_bytes(const ListingView& listing) {
  return 128 + listing.attributes.size() + sizeof(uint64_t) * listing.attribute_ends.size() +
         sizeof(uint32_t) * (listing.object_begins.size() + listing.order.size()) +
         listing.secondary.size();
}

bool is_plain(const Listing& listing) {
  return listing.object_begins.empty() && listing.order.empty() && listing.secondary.empty() &&
         listing.attribute_ends.empty();
}

// Finishes a buffer around the body that add_body sets. minor: schema that the body needs.
template <typename AddBody>
std::span<const std::byte> finish_in_place(FlatBufferBuilder* builder, wire::PlanBufferKind kind,
                                           const AddBody& add_body, uint32_t minor) {
  wire::PlanBufferBuilder root(*builder);
  root.add_schema_major(internal::kPlanSchemaMajor);
  root.add_schema_minor(minor);
  root.add_minimum_reader_minor(minor);
  root.add_kind(kind);
  add_body(&root);
  builder->FinishSizePrefixed(root.Finish(), internal::kPlanIdentifier);
  return {reinterpret_cast<const std::byte*>(builder->GetBufferPointer()), builder->GetSize()};
}

// The same as bytes of their own, for bodies of the first schema.
template <typename AddBody>
Bytes finish(FlatBufferBuilder* builder, wire::PlanBufferKind kind, const AddBody& add_body) {
  const auto bytes = finish_in_place(builder, kind, add_body, 0);
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace

uint64_t local_save_wire_bytes(const LocalView& plan) {
  return kFixedBytes + catalog_wire_bytes(plan.catalog) + plan.options_text.size() +
         listing_bytes(plan.listing) +
         sizeof(Digest128) * (plan.tensor_digests.size() + plan.object_digests.size());
}

Result<std::span<const std::byte>> internal::encode_into(FlatBufferBuilder* builder,
                                                         const LocalSavePlan& plan) {
  const uint64_t size = local_save_wire_bytes(view_of(plan));
  SHW_RETURN_IF_ERROR(check_wire_size(size, plan.kept ? "the kept plan" : "the local plan"));
  builder->Clear();
  const Offset<wire::Catalog> catalog(encode_catalog(builder, plan.catalog));
  const auto options_text = text_bytes(builder, plan.options_text);
  const auto tensor_digests = digests(builder, plan.tensor_digests);
  const auto object_digests = digests(builder, plan.object_digests);
  const auto attributes = attributes_of(builder, plan.listing);
  const auto order = numbers_of(builder, plan.listing.order);
  const auto object_begins = numbers_of(builder, plan.listing.object_begins);
  const auto secondary = numbers_of(builder, plan.listing.secondary);
  const wire::Digest options_digest = wire::encode_digest(plan.options_digest);
  const auto body = wire::CreateLocalSave(*builder, plan.rank, plan.world_size, &options_digest,
                                          options_text, catalog, tensor_digests, object_digests,
                                          attributes, order, object_begins, secondary);
  if (plan.kept) {
    return finish_in_place(
        builder, wire::PlanBufferKind::KeptSave, [&](auto* root) { root->add_kept_save(body); },
        internal::kListingSchemaMinor);
  }
  return finish_in_place(
      builder, wire::PlanBufferKind::LocalSave, [&](auto* root) { root->add_local_save(body); },
      is_plain(plan.listing) ? 0 : internal::kListingSchemaMinor);
}

Result<Bytes> encode(const LocalSavePlan& plan) {
  FlatBufferBuilder builder(local_save_wire_bytes(view_of(plan)));
  SHW_ASSIGN_OR_RETURN(const auto bytes, internal::encode_into(&builder, plan));
  return Bytes(bytes.begin(), bytes.end());
}

Result<Bytes> encode(const WriteList& list) {
  const uint64_t size =
      kFixedBytes + list.generation.size() + sizeof(WriteItem) * list.items.size();
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the write list"));
  FlatBufferBuilder builder(size);
  const auto generation = text_bytes(&builder, list.generation);
  Offset<Vector<const wire::WriteRecord*>> items = 0;
  if (!list.items.empty()) {
    wire::WriteRecord* out = nullptr;
    items = builder.CreateUninitializedVectorOfStructs(list.items.size(), &out);
    std::memcpy(static_cast<void*>(out), list.items.data(), list.items.size() * sizeof(WriteItem));
  }
  const wire::Digest plan_digest = wire::encode_digest(list.plan_digest);
  const auto body =
      wire::CreateWriteList(builder, list.rank, list.world_size, generation, &plan_digest, items);
  return finish(&builder, wire::PlanBufferKind::WriteList,
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
  const auto generation = text_bytes(&builder, plan.generation);
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
  return finish(&builder, wire::PlanBufferKind::Load, [&](auto* root) { root->add_load(body); });
}

Result<Bytes> encode(const WriteResult& result) {
  const uint64_t size = kFixedBytes + result.generation.size();
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the write result"));
  FlatBufferBuilder builder(size);
  const auto generation = text_bytes(&builder, result.generation);
  const wire::Digest plan_digest = wire::encode_digest(result.plan_digest);
  const wire::Digest index_digest = wire::encode_digest(result.index_digest);
  const auto body = wire::CreateWriteResult(
      builder, result.rank, generation, &plan_digest, result.has_file, result.file_bytes,
      result.index_position, result.index_bytes, &index_digest, result.payload_bytes,
      !result.directory_sync_supported);
  return finish(&builder, wire::PlanBufferKind::WriteResult,
                [&](auto* root) { root->add_write_result(body); });
}

uint64_t merged_save_wire_bytes(const GlobalSavePlan& plan) {
  return kFixedBytes + catalog_wire_bytes(plan.catalog) + plan.generation.size() +
         listing_bytes(view_of(plan.listing));
}

Result<std::span<const std::byte>> internal::encode_into(FlatBufferBuilder* builder,
                                                         const GlobalSavePlan& plan) {
  SHW_RETURN_IF_ERROR(check_wire_size(merged_save_wire_bytes(plan), "the merged plan"));
  builder->Clear();
  const Offset<wire::Catalog> catalog(encode_catalog(builder, plan.catalog));
  const auto generation = text_bytes(builder, plan.generation);
  const auto attributes = attributes_of(builder, plan.listing);
  const auto object_begins = numbers_of(builder, plan.listing.object_begins);
  const wire::Digest plan_digest = wire::encode_digest(plan.plan_digest);
  const auto body =
      wire::CreateMergedSave(*builder, generation, plan.generation.empty() ? nullptr : &plan_digest,
                             catalog, attributes, object_begins);
  return finish_in_place(
      builder, wire::PlanBufferKind::MergedSave, [&](auto* root) { root->add_merged_save(body); },
      plan.generation.empty() ? internal::kListingSchemaMinor : 0);
}

Result<Bytes> encode(const GlobalSavePlan& plan) {
  FlatBufferBuilder builder(merged_save_wire_bytes(plan));
  SHW_ASSIGN_OR_RETURN(const auto bytes, internal::encode_into(&builder, plan));
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace shardwright::plan
