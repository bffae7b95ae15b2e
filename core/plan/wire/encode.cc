// SPDX-License-Identifier: Apache-2.0
//
// Plans to plan buffers. Sizes are bounded before a builder is made, because FlatBuffers cannot
// report that one outgrew its limit. Equal descriptions give equal bytes. A merged plan that is a
// part is encoded where it will lie: a large one is not copied to memory nobody has touched yet.
#include <cstring>

#include "core/base/huge_pages.h"
#include "core/integrity/digest.h"
#include "core/plan/rank_plans.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/large_allocator_internal.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/records.h"
#include "core/plan/wire/vectors_internal.h"

namespace shardwright::plan {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using internal::bytes_of;
using internal::converted;
using internal::encode_body;
using internal::numbers_of;
using internal::records_of;
using wire::encode_digest;

// Upper bounds.
uint64_t names_bytes(const std::vector<std::string>& names) {
  uint64_t bytes = 64;
  for (const std::string& name : names) bytes += name.size() + sizeof(uint64_t);
  return bytes;
}

uint64_t columns_bytes(const PartView& part) {
  return std::apply([](const auto&... columns) { return bytes_of(columns...); },
                    columns_of_part(part));
}

Offset<wire::NameList> name_list(FlatBufferBuilder* builder,
                                 const std::vector<std::string>& names) {
  if (names.empty()) return 0;
  std::string texts;
  std::vector<uint64_t> ends;
  for (const std::string& name : names) {
    texts += name;
    ends.push_back(texts.size());
  }
  const auto texts_offset = numbers_of<uint8_t>(builder, texts);
  return wire::CreateNameList(*builder, texts_offset, builder->CreateVector(ends));
}

Offset<wire::LocalPart> part_table(FlatBufferBuilder* builder, const PartView& part) {
  const auto lists = records_of<wire::BoxList>(builder, part.lists);
  const auto boxes = records_of<wire::ChunkRecord>(builder, part.boxes);
  const auto more = records_of<wire::ExtentPair>(builder, part.more);
  const auto object_sizes = numbers_of<uint64_t>(builder, part.object_sizes);
  const auto digest_tensors = numbers_of<uint32_t>(builder, part.digest_tensors);
  const auto tensor_digests = records_of<wire::Digest>(builder, part.tensor_digests);
  const auto attributes = internal::attributes_of(builder, part.listing);
  const auto object_begins = numbers_of<uint32_t>(builder, part.listing.object_begins);
  const auto order = numbers_of<uint32_t>(builder, part.listing.order);
  const auto secondary = numbers_of<uint8_t>(builder, part.listing.secondary);
  const wire::Digest digest = encode_digest(part.description_digest);
  return wire::CreateLocalPart(*builder, part.rank, part.world_size, &digest, lists, boxes, more,
                               object_sizes, digest_tensors, tensor_digests, attributes,
                               object_begins, order, secondary);
}

Offset<wire::Load> load_table(FlatBufferBuilder* builder, const LoadPlan& plan) {
  const auto generation = numbers_of<uint8_t>(builder, plan.generation);
  std::vector<wire::ExtentPair> pairs;
  wire::ReadRecord* out = nullptr;
  const auto reads = builder->CreateUninitializedVectorOfStructs(plan.reads.size(), &out);
  for (size_t i = 0; i < plan.reads.size(); ++i) {
    const ReadKey& key = plan.reads.key(i);
    const std::span<const int64_t> offsets = plan.reads.offsets(i);
    const std::span<const int64_t> sizes = plan.reads.sizes(i);
    *out++ = {key.entry, key.piece, key.chunk, static_cast<uint32_t>(sizes.size()), 0U};
    for (size_t d = 0; d < sizes.size(); ++d)
      pairs.emplace_back(static_cast<uint64_t>(offsets[d]), static_cast<uint64_t>(sizes[d]));
  }
  const auto boxes = builder->CreateVectorOfStructs(pairs);
  const auto objects = converted<wire::ObjectReadRecord>(
      builder, plan.objects,
      [](const ObjectRead& read) { return wire::ObjectReadRecord(read.entry, 0, read.object); });
  const auto loaded = name_list(builder, plan.loaded);
  const auto missing = name_list(builder, plan.missing);
  const auto unexpected = name_list(builder, plan.unexpected);
  const auto casts = converted<wire::CastRecord>(builder, plan.casts, [](const CastNote& note) {
    return wire::CastRecord(note.entry, static_cast<uint8_t>(note.stored),
                            static_cast<uint8_t>(note.wanted), 0);
  });
  Offset<flatbuffers::Vector<const wire::ShapeRecord*>> shapes = 0;
  if (!plan.shapes.empty()) {
    shapes = converted<wire::ShapeRecord>(builder, plan.shapes, [](const ShapeNote& note) {
      return wire::ShapeRecord(note.entry, 0, note.tensor);
    });
  }
  return wire::CreateLoad(*builder, plan.rank, generation, reads, boxes, objects, loaded, missing,
                          unexpected, casts, shapes);
}

Offset<wire::MergedSave> merged_table(FlatBufferBuilder* builder, const GlobalSavePlan& plan) {
  const Offset<wire::Catalog> catalog(encode_catalog(builder, plan.catalog));
  const auto generation = numbers_of<uint8_t>(builder, plan.generation);
  const auto attributes = internal::attributes_of(builder, view_of(plan.listing));
  const auto object_begins = numbers_of<uint32_t>(builder, plan.listing.object_begins);
  const wire::Digest plan_digest = encode_digest(plan.plan_digest);
  return wire::CreateMergedSave(*builder, generation,
                                plan.generation.empty() ? nullptr : &plan_digest, catalog,
                                attributes, object_begins);
}

}  // namespace

Result<Bytes> encode(const WriteList& list) {
  const uint64_t bytes = bytes_of(list.generation, list.items);
  return encode_body(bytes, "the write list", [&](FlatBufferBuilder* builder) {
    const auto generation = numbers_of<uint8_t>(builder, list.generation);
    const auto items = records_of<wire::WriteRecord>(builder, list.items);
    const wire::Digest plan_digest = encode_digest(list.plan_digest);
    return wire::CreateWriteList(*builder, list.rank, list.world_size, generation, &plan_digest,
                                 items);
  });
}

Result<Bytes> encode(const LoadPlan& plan) {
  uint64_t dimensions = 0;
  for (size_t i = 0; i < plan.reads.size(); ++i) dimensions += plan.reads.sizes(i).size();
  const uint64_t bytes = plan.generation.size() + sizeof(wire::ReadRecord) * plan.reads.size() +
                         sizeof(wire::ExtentPair) * dimensions +
                         sizeof(wire::ObjectReadRecord) * plan.objects.size() +
                         sizeof(wire::CastRecord) * plan.casts.size() +
                         sizeof(wire::ShapeRecord) * plan.shapes.size() + names_bytes(plan.loaded) +
                         names_bytes(plan.missing) + names_bytes(plan.unexpected);
  return encode_body(bytes, "the load plan",
                     [&](FlatBufferBuilder* builder) { return load_table(builder, plan); });
}

Result<Bytes> encode(const WriteResult& result) {
  const uint64_t bytes =
      result.generation.size() + result.details.size() + result.file_sha256.size();
  return encode_body(bytes, "the write result", [&](FlatBufferBuilder* builder) {
    const auto generation = numbers_of<uint8_t>(builder, result.generation);
    const auto details = numbers_of<uint8_t>(builder, result.details);
    const auto file_sha256 = numbers_of<uint8_t>(builder, result.file_sha256);
    const wire::Digest plan_digest = encode_digest(result.plan_digest);
    const wire::Digest index_digest = encode_digest(result.index_digest);
    return wire::CreateWriteResult(*builder, result.rank, generation, &plan_digest, result.has_file,
                                   result.file_bytes, result.index_position, result.index_bytes,
                                   &index_digest, result.payload_bytes,
                                   !result.directory_sync_supported, details, file_sha256);
  });
}

Result<Bytes> encode(const WantList& list) {
  return encode_body(bytes_of(list.generation, list.blocks), "what a rank wants",
                     [&](FlatBufferBuilder* builder) {
                       const auto generation = numbers_of<uint8_t>(builder, list.generation);
                       const auto blocks = records_of<wire::StoredBlock>(builder, list.blocks);
                       return wire::CreateWantList(*builder, list.rank, list.world_size, list.node,
                                                   generation, list.round_bytes, blocks);
                     });
}

Result<Bytes> encode(const ExchangePlan& plan) {
  const uint64_t bytes = bytes_of(plan.generation, plan.routes, plan.targets, plan.rounds);
  return encode_body(bytes, "the exchange plan", [&](FlatBufferBuilder* builder) {
    const auto generation = numbers_of<uint8_t>(builder, plan.generation);
    const auto routes = records_of<wire::Route>(builder, plan.routes);
    const auto targets = numbers_of<int32_t>(builder, plan.targets);
    const auto rounds = numbers_of<uint64_t>(builder, plan.rounds);
    return wire::CreateExchange(*builder, plan.rank, plan.world_size, generation, plan.span_bytes,
                                routes, targets, rounds);
  });
}

uint64_t merged_save_wire_bytes(const GlobalSavePlan& plan) {
  const Listing& listing = plan.listing;
  return internal::kFixedBytes + catalog_wire_bytes(plan.catalog) +
         bytes_of(plan.generation, listing.object_begins, listing.attributes,
                  listing.attribute_ends);
}

Result<Bytes> encode(const GlobalSavePlan& plan) {
  return encode_body(merged_save_wire_bytes(plan), "the merged plan",
                     [&](FlatBufferBuilder* builder) { return merged_table(builder, plan); });
}

Result<Bytes> encode(const Description& description) {
  const uint64_t bytes =
      catalog_wire_bytes(description.catalog) +
      bytes_of(description.options_text, description.forms, description.axes,
               description.layout_ends, description.tensor_digests, description.object_digests);
  return encode_body(bytes, "the description", [&](FlatBufferBuilder* builder) {
    const Offset<wire::Catalog> catalog(encode_catalog(builder, description.catalog));
    const auto options_text = numbers_of<uint8_t>(builder, description.options_text);
    const auto forms = numbers_of<uint32_t>(builder, description.forms);
    const auto axes = records_of<wire::ShardAxis>(builder, description.axes);
    const auto layout_ends = numbers_of<uint32_t>(builder, description.layout_ends);
    const auto tensor_digests = records_of<wire::Digest>(builder, description.tensor_digests);
    const auto object_digests = records_of<wire::Digest>(builder, description.object_digests);
    const wire::Digest digest = encode_digest(description.options_digest);
    return wire::CreateDescription(*builder, &digest, options_text, catalog, forms, axes,
                                   layout_ends, tensor_digests, object_digests);
  });
}

Result<Bytes> encode(const LocalPart& part) {
  const PartView view = view_of(part);
  return encode_body(columns_bytes(view), "the part of a local plan",
                     [&](FlatBufferBuilder* builder) { return part_table(builder, view); });
}

Result<Bytes> encode(const LocalPlan& plan) {
  SHW_ASSIGN_OR_RETURN(const Bytes description, encode(plan.description));
  const PartView part = view_of(plan.part);
  const uint64_t bytes = description.size() + columns_bytes(part);
  return encode_body(bytes, "the local plan", [&](FlatBufferBuilder* builder) {
    const auto description_bytes = numbers_of<uint8_t>(builder, description);
    return wire::CreateLocalSave(*builder, description_bytes, part_table(builder, part));
  });
}

Result<Digest128> description_digest(const Description& description) {
  SHW_ASSIGN_OR_RETURN(const Bytes bytes, encode(description));
  return integrity::xxh3_128(bytes);
}

Result<Digest128> items_digest(const LocalPlan& plan) {
  Description bare = plan.description;
  bare.tensor_digests.clear();
  bare.object_digests.clear();
  SHW_ASSIGN_OR_RETURN(const Digest128 digest, description_digest(bare));
  return local_digest(digest, view_of(plan.part), {plan.part.rank, plan.part.world_size});
}

PlanParts::PlanParts(size_t capacity)
    : capacity_(capacity),
      memory_(static_cast<std::byte*>(::operator new[](capacity + 1, kAlignment))) {
  advise_huge_pages(memory_.get(), capacity);
}

Result<PlanParts> PlanParts::create(const GlobalSavePlan& merged, uint64_t numbers) {
  const uint64_t bound = merged_save_wire_bytes(merged);
  SHW_RETURN_IF_ERROR(check_wire_size(bound, "the merged plan"));
  PlanParts parts(bound + numbers * sizeof(uint32_t));
  // A builder fills its memory from the end, and the bound is a little more than what it needs.
  internal::LentMemory lent(std::span(parts.memory_.get(), bound));
  flatbuffers::FlatBufferBuilder builder(bound, &lent);
  const auto bytes = internal::finish(&builder, merged_table(&builder, merged));
  if (bytes.size() > bound) return internal_error("a merged plan outgrows its bound");
  static_assert(sizeof(flatbuffers::uoffset_t) == alignof(uint32_t));  // what a buffer is padded to
  std::memmove(parts.memory_.get(), bytes.data(), bytes.size());
  parts.offsets_.push_back(bytes.size());
  return parts;
}

Result<std::span<uint32_t>> PlanParts::append(size_t count) {
  const uint64_t begin = offsets_.back();
  if (count > (capacity_ - begin) / sizeof(uint32_t))
    return internal_error("the numbers of a merge outgrow the memory that was asked for");
  offsets_.push_back(begin + count * sizeof(uint32_t));
  return std::span(reinterpret_cast<uint32_t*>(memory_.get() + begin), count);
}

std::span<const uint32_t> PlanParts::numbers(size_t index) const {
  const std::span<const std::byte> bytes = part(index);
  return {reinterpret_cast<const uint32_t*>(bytes.data()), bytes.size() / sizeof(uint32_t)};
}

PlanParts::Memory PlanParts::take_memory() {
  memory_[offsets_.back()] = std::byte{0};
  return std::move(memory_);
}

}  // namespace shardwright::plan
