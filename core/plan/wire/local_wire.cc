// SPDX-License-Identifier: Apache-2.0
//
// Descriptions and parts to plan buffers and back. Equal descriptions give equal bytes.
#include <fmt/format.h>

#include "core/plan/digest.h"
#include "core/plan/rank_plans.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/columns_internal.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/vectors_internal.h"

namespace shardwright::plan {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using internal::kFixedBytes;
using internal::numbers_of;
using internal::records_of;

static_assert(sizeof(wire::ShardAxis) == sizeof(ShardAxis));
static_assert(sizeof(wire::BoxList) == sizeof(BoxList));

Offset<wire::LocalPart> part_table(FlatBufferBuilder* builder, const LocalPart& part) {
  const auto lists = records_of<wire::BoxList>(builder, part.lists);
  const auto boxes = records_of<wire::ChunkRecord>(builder, part.boxes);
  const auto more = records_of<wire::ExtentPair>(builder, part.more);
  const auto object_sizes = numbers_of(builder, part.object_sizes);
  const auto digest_tensors = numbers_of(builder, part.digest_tensors);
  const auto tensor_digests = records_of<wire::Digest>(builder, part.tensor_digests);
  const auto attributes = internal::attributes_of(builder, part.listing);
  const auto object_begins = numbers_of(builder, part.listing.object_begins);
  const auto order = numbers_of(builder, part.listing.order);
  const auto secondary = numbers_of(builder, part.listing.secondary);
  const wire::Digest digest = wire::encode_digest(part.description_digest);
  return wire::CreateLocalPart(*builder, part.rank, part.world_size, &digest, lists, boxes, more,
                               object_sizes, digest_tensors, tensor_digests, attributes,
                               object_begins, order, secondary);
}

// Upper bounds.
uint64_t description_wire_bytes(const Description& description) {
  return kFixedBytes + catalog_wire_bytes(description.catalog) + description.options_text.size() +
         sizeof(ShardAxis) * description.axes.size() +
         sizeof(uint32_t) * (description.layout_ends.size() + description.forms.size()) +
         sizeof(Digest128) *
             (description.tensor_digests.size() + description.object_digests.size());
}

uint64_t part_wire_bytes(const PartView& part) {
  return kFixedBytes + part.lists.size_bytes() + part.boxes.size_bytes() + part.more.size_bytes() +
         part.object_sizes.size_bytes() + part.digest_tensors.size_bytes() +
         part.tensor_digests.size_bytes() + internal::listing_wire_bytes(part.listing);
}

template <typename Value>
std::vector<Value> copy_of(std::span<const Value> values) {
  return {values.begin(), values.end()};
}

LocalPart copy_of(const PartView& view) {
  const ListingView& listing = view.listing;
  return {view.rank,
          view.world_size,
          view.description_digest,
          copy_of(view.lists),
          copy_of(view.boxes),
          copy_of(view.more),
          copy_of(view.object_sizes),
          copy_of(view.digest_tensors),
          copy_of(view.tensor_digests),
          {copy_of(listing.object_begins), copy_of(listing.order), copy_of(listing.secondary),
           copy_of(listing.attributes), copy_of(listing.attribute_ends)}};
}

}  // namespace

Result<Bytes> encode(const Description& description) {
  const uint64_t size = description_wire_bytes(description);
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the description"));
  FlatBufferBuilder builder(size);
  const Offset<wire::Catalog> catalog(encode_catalog(&builder, description.catalog));
  const auto options_text = internal::text_of(&builder, description.options_text);
  const auto forms = numbers_of(&builder, description.forms);
  const auto axes = records_of<wire::ShardAxis>(&builder, description.axes);
  const auto layout_ends = numbers_of(&builder, description.layout_ends);
  const auto tensor_digests = records_of<wire::Digest>(&builder, description.tensor_digests);
  const auto object_digests = records_of<wire::Digest>(&builder, description.object_digests);
  const wire::Digest digest = wire::encode_digest(description.options_digest);
  const auto body = wire::CreateDescription(builder, &digest, options_text, catalog, forms, axes,
                                            layout_ends, tensor_digests, object_digests);
  return internal::finish(&builder, wire::PlanBufferKind::Description,
                          [&](auto* root) { root->add_description(body); });
}

Result<Bytes> encode(const LocalPart& part) {
  const uint64_t size = part_wire_bytes(view_of(part));
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the part of a local plan"));
  FlatBufferBuilder builder(size);
  const auto body = part_table(&builder, part);
  return internal::finish(&builder, wire::PlanBufferKind::LocalPart,
                          [&](auto* root) { root->add_local_part(body); });
}

Result<Bytes> encode(const LocalPlan& plan) {
  SHW_ASSIGN_OR_RETURN(const Bytes description, encode(plan.description));
  const uint64_t size = kFixedBytes + description.size() + part_wire_bytes(view_of(plan.part));
  SHW_RETURN_IF_ERROR(check_wire_size(size, "the local plan"));
  FlatBufferBuilder builder(size);
  const auto bytes = internal::bytes_of(&builder, description.data(), description.size());
  const auto part = part_table(&builder, plan.part);
  const auto body = wire::CreateLocalSave(builder, bytes, part);
  return internal::finish(&builder, wire::PlanBufferKind::LocalSave,
                          [&](auto* root) { root->add_local_save(body); });
}

Result<Description> internal::copy_body(const wire::Description* body) {
  Description description;
  description.options_digest = wire::decode_digest(body->options_digest());
  description.options_text = copy_text(body->options_text());
  SHW_ASSIGN_OR_RETURN(description.catalog, copy_catalog(body->catalog()));
  description.forms = copy_column<uint32_t>(body->forms());
  description.axes = copy_column<ShardAxis>(body->axes());
  description.layout_ends = copy_column<uint32_t>(body->layout_ends());
  description.tensor_digests = copy_column<Digest128>(body->tensor_digests());
  description.object_digests = copy_column<Digest128>(body->object_digests());
  return description;
}

PartView internal::view_part(const wire::LocalPart* body, Owned* owned) {
  PartView part;
  if (body == nullptr) return part;
  part.rank = body->rank();
  part.world_size = body->world_size();
  part.description_digest = wire::decode_digest(body->description_digest());
  part.lists = column_in_place<BoxList>(body->lists(), owned);
  part.boxes = column_in_place<ChunkRecord>(body->boxes(), owned);
  part.more = column_in_place<ExtentPair>(body->more(), owned);
  part.object_sizes = column_in_place<uint64_t>(body->object_sizes(), owned);
  part.digest_tensors = column_in_place<uint32_t>(body->digest_tensors(), owned);
  part.tensor_digests = column_in_place<Digest128>(body->tensor_digests(), owned);
  part.listing.object_begins = column_in_place<uint32_t>(body->object_begins(), owned);
  part.listing.order = column_in_place<uint32_t>(body->order(), owned);
  part.listing.secondary = column_in_place<uint8_t>(body->secondary(), owned);
  if (body->attributes() == nullptr) return part;
  part.listing.attributes = column_in_place<char>(body->attributes()->texts(), owned);
  part.listing.attribute_ends = column_in_place<uint64_t>(body->attributes()->ends(), owned);
  return part;
}

Result<LocalPart> internal::copy_body(const wire::LocalPart* body) {
  Owned owned;
  return copy_of(view_part(body, &owned));
}

Result<LocalPlan> internal::copy_body(const wire::LocalSave* body) {
  LocalPlan plan;
  Result<Description> description = decode_description(bytes_of_column(body->description()));
  if (!description.ok()) {
    const Status& status = description.status();
    if (status.code() == StatusCode::kUnimplemented) return status;
    return data_loss(fmt::format("the description in it: {}", status.message()));
  }
  plan.description = *std::move(description);
  SHW_ASSIGN_OR_RETURN(plan.part, copy_body(body->part()));
  if (plan.part.description_digest != plan.description.digest)
    return data_loss("the part belongs to another description");
  return plan;
}

Result<Digest128> description_digest(const Description& description) {
  SHW_ASSIGN_OR_RETURN(const Bytes bytes, encode(description));
  return content_digest(bytes);
}

Result<Digest128> items_digest(const LocalPlan& plan) {
  Description bare = plan.description;
  bare.tensor_digests.clear();
  bare.object_digests.clear();
  SHW_ASSIGN_OR_RETURN(const Digest128 digest, description_digest(bare));
  return local_digest(digest, view_of(plan.part), {plan.part.rank, plan.part.world_size});
}

}  // namespace shardwright::plan
