// SPDX-License-Identifier: Apache-2.0
//
// Verified bodies of plan buffers to values. Every vector may be absent, which is the same as
// empty.

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/columns_internal.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan::internal {
namespace {

using flatbuffers::uoffset_t;

Result<std::vector<std::string>> copy_names(const wire::NameList* list) {
  std::vector<std::string> names;
  if (list == nullptr) return names;
  const std::string texts = copy_text(list->texts());
  const std::vector<uint64_t> ends = copy_column<uint64_t>(list->ends());
  names.reserve(ends.size());
  uint64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const uint64_t end = ends[i];
    if (end < begin || end > texts.size())
      return data_loss(fmt::format("name {} of a list ends at {}", i, end));
    names.push_back(texts.substr(begin, end - begin));
    begin = end;
  }
  if (begin != texts.size())
    return data_loss(fmt::format("a list of names uses {} of {} bytes", begin, texts.size()));
  return names;
}

Status copy_reads(const wire::Load& body, LoadPlan* plan) {
  uint64_t pair = 0;
  const uint64_t pairs = count_of(body.boxes());
  plan->reads.reserve(count_of(body.reads()), 2 * pairs);
  for (uoffset_t i = 0; i < count_of(body.reads()); ++i) {
    const wire::ReadRecord record = record_at(body.reads(), i);
    if (record.reserved() != 0)
      return data_loss(fmt::format("read {} has a reserved byte that is not zero", i));
    if (record.dimension_count() > static_cast<uint32_t>(kMaxTensorRank) ||
        record.dimension_count() > pairs - pair) {
      return data_loss(
          fmt::format("the box of read {} has {} dimensions", i, record.dimension_count()));
    }
    ReadItem read{record.entry(), record.piece(), record.chunk(), {}};
    read.box.offsets = Dims(record.dimension_count(), 0);
    read.box.sizes = Dims(record.dimension_count(), 0);
    for (uint32_t d = 0; d < record.dimension_count(); ++d) {
      const wire::ExtentPair extent = record_at(body.boxes(), pair++);
      read.box.offsets[d] = static_cast<int64_t>(extent.offset());
      read.box.sizes[d] = static_cast<int64_t>(extent.size());
    }
    plan->reads.append(read);
  }
  if (pair != pairs)
    return data_loss(fmt::format("the reads use {} of {} box dimensions", pair, pairs));
  return {};
}

Status copy_small_columns(const wire::Load& body, LoadPlan* plan) {
  for (uoffset_t i = 0; i < count_of(body.objects()); ++i) {
    const wire::ObjectReadRecord record = record_at(body.objects(), i);
    if (record.reserved() != 0)
      return data_loss(fmt::format("object read {} has a reserved byte that is not zero", i));
    plan->objects.push_back({record.entry(), record.object()});
  }
  for (uoffset_t i = 0; i < count_of(body.casts()); ++i) {
    const wire::CastRecord& record = *body.casts()->Get(i);
    if (record.reserved() != 0)
      return data_loss(fmt::format("cast {} has a reserved byte that is not zero", i));
    plan->casts.push_back(
        {record.entry(), static_cast<DType>(record.stored()), static_cast<DType>(record.wanted())});
  }
  for (uoffset_t i = 0; i < count_of(body.shapes()); ++i) {
    const wire::ShapeRecord record = record_at(body.shapes(), i);
    if (record.reserved() != 0)
      return data_loss(fmt::format("shape {} has a reserved byte that is not zero", i));
    plan->shapes.push_back({record.entry(), record.tensor()});
  }
  return {};
}

}  // namespace

Result<WriteList> copy_body(const wire::WriteList* body) {
  WriteList list;
  list.rank = body->rank();
  list.world_size = body->world_size();
  list.generation = copy_text(body->generation());
  list.plan_digest = wire::decode_digest(body->plan_digest());
  list.items = copy_column<WriteItem>(body->items());
  return list;
}

Result<LoadPlan> copy_body(const wire::Load* body) {
  LoadPlan plan;
  plan.rank = body->rank();
  plan.generation = copy_text(body->generation());
  SHW_RETURN_IF_ERROR(copy_reads(*body, &plan));
  SHW_RETURN_IF_ERROR(copy_small_columns(*body, &plan));
  SHW_ASSIGN_OR_RETURN(plan.loaded, copy_names(body->loaded()));
  SHW_ASSIGN_OR_RETURN(plan.missing, copy_names(body->missing()));
  SHW_ASSIGN_OR_RETURN(plan.unexpected, copy_names(body->unexpected()));
  return plan;
}

Result<WriteResult> copy_body(const wire::WriteResult* body) {
  WriteResult result;
  result.rank = body->rank();
  result.generation = copy_text(body->generation());
  result.plan_digest = wire::decode_digest(body->plan_digest());
  result.has_file = body->has_file();
  result.file_bytes = body->file_bytes();
  result.index_position = body->index_position();
  result.index_bytes = body->index_bytes();
  result.index_digest = wire::decode_digest(body->index_digest());
  result.payload_bytes = body->payload_bytes();
  result.directory_sync_supported = !body->directory_sync_unsupported();
  return result;
}

Result<GlobalSavePlan> copy_body(const wire::MergedSave* body) {
  GlobalSavePlan plan;
  plan.generation = copy_text(body->generation());
  plan.plan_digest = wire::decode_digest(body->plan_digest());
  SHW_ASSIGN_OR_RETURN(plan.catalog, copy_catalog(body->catalog()));
  plan.listing.object_begins = copy_column<uint32_t>(body->object_begins());
  if (body->attributes() == nullptr) return plan;
  plan.listing.attributes = copy_column<char>(body->attributes()->texts());
  plan.listing.attribute_ends = copy_column<uint64_t>(body->attributes()->ends());
  return plan;
}

}  // namespace shardwright::plan::internal
