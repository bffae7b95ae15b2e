// SPDX-License-Identifier: Apache-2.0
//
// Plan buffers to plans: all checks, the first finding is the failure. They come in this order:
// frame (length, alignment, prefix, identifier), verifier with explicit limits, schema version,
// kind and body; then the body is copied to values, which refuses only what cannot be represented,
// and findings.cc says what is wrong with their meaning.
#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/integrity/digest.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/vectors_internal.h"

namespace shardwright::plan {
namespace {

using flatbuffers::uoffset_t;
using internal::Body;
using internal::copy_column;
using internal::copy_text;
using internal::count_of;
using internal::OpenedPlan;
using internal::record_at;

constexpr uoffset_t kMaxDepth = 32;
constexpr std::array<std::string_view, std::variant_size_v<Body>> kKindNames = {
    "local save plan", "write list",           "load plan", "write result", "merged save plan",
    "description",     "part of a local plan", "want list", "exchange plan"};

Status verify(std::span<const std::byte> buffer) {
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  options.max_tables = static_cast<uoffset_t>(std::max<size_t>(64, buffer.size() / 16));
  options.check_alignment = true;
  options.check_nested_flatbuffers = true;
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(buffer.data()), buffer.size(),
                                 options);
  if (verifier.VerifySizePrefixedBuffer<wire::PlanBuffer>(internal::kPlanIdentifier)) return {};
  return data_loss(fmt::format(
      "the plan buffer of {} bytes is damaged: an offset or a vector leaves it", buffer.size()));
}

Status check_version(const wire::PlanBuffer& root) {
  const std::string found = fmt::format("{}.{}", root.schema_major(), root.schema_minor());
  if (root.schema_major() == internal::kPlanSchemaMajor &&
      root.minimum_reader_minor() <= internal::kPlanSchemaMinor) {
    if (root.minimum_reader_minor() <= root.schema_minor()) return {};
    return data_loss(
        fmt::format("a plan of schema {} says that it needs a reader of minor version {}", found,
                    root.minimum_reader_minor()));
  }
  if (root.schema_major() == 0) return data_loss("the plan buffer names no schema version");
  const std::string needed = fmt::format("{}.{}", root.schema_major(), root.minimum_reader_minor());
  return unimplemented(
             fmt::format(
                 "the plan has schema version {} and needs a reader of {}; this one reads {}.{}",
                 found, needed, internal::kPlanSchemaMajor, internal::kPlanSchemaMinor))
      .with_detail("needed_version", needed);
}

// The body of the buffer's kind, when it alone is present.
Status find_body(const wire::PlanBuffer& root, Body* found) {
  const auto wanted = static_cast<size_t>(root.kind());
  const std::array<Body, std::variant_size_v<Body>> bodies = {
      root.local_save(),   root.write_list(),  root.load(),
      root.write_result(), root.merged_save(), root.description(),
      root.local_part(),   root.want_list(),   root.exchange()};
  for (const Body& body : bodies) {
    const size_t kind = body.index() + 1;
    const bool present = std::visit([](const auto* table) { return table != nullptr; }, body);
    if (kind == wanted) *found = body;
    if ((kind == wanted) == present) continue;
    return data_loss(fmt::format("a plan buffer of kind {} {} the body of kind {}", wanted,
                                 present ? "has" : "lacks", kind));
  }
  if (wanted >= 1 && wanted <= bodies.size()) return {};
  return unimplemented(
      fmt::format("the plan buffer has kind {}, which this version does not know", wanted));
}

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

// What convert makes of each record, whose reserved bytes are zero.
template <typename Record, typename Value, typename Convert>
Status copy_records(const flatbuffers::Vector<const Record*>* from, std::string_view what,
                    std::vector<Value>* to, const Convert& convert) {
  to->reserve(count_of(from));
  for (uoffset_t i = 0; i < count_of(from); ++i) {
    const Record record = record_at(from, i);
    if (record.reserved() != 0)
      return data_loss(fmt::format("{} {} has a reserved byte that is not zero", what, i));
    to->push_back(convert(record));
  }
  return {};
}

Status copy_reads(const wire::Load& body, ReadColumn* reads) {
  uint64_t pair = 0;
  const uint64_t pairs = count_of(body.boxes());
  reads->reserve(count_of(body.reads()), 2 * pairs);
  for (uoffset_t i = 0; i < count_of(body.reads()); ++i) {
    const wire::ReadRecord record = record_at(body.reads(), i);
    const uint32_t dimensions = record.dimension_count();
    if (record.reserved() != 0)
      return data_loss(fmt::format("read {} has a reserved byte that is not zero", i));
    if (dimensions > static_cast<uint32_t>(kMaxTensorRank) || dimensions > pairs - pair)
      return data_loss(fmt::format("the box of read {} has {} dimensions", i, dimensions));
    reads->append_blank(1, dimensions);
    reads->key(i) = {record.chunk(), record.entry(), record.piece()};
    int64_t* const numbers = reads->numbers(i);
    for (uint32_t d = 0; d < dimensions; ++d) {
      const wire::ExtentPair extent = record_at(body.boxes(), pair++);
      numbers[d] = static_cast<int64_t>(extent.offset());
      numbers[dimensions + d] = static_cast<int64_t>(extent.size());
    }
  }
  if (pair == pairs) return {};
  return data_loss(fmt::format("the reads use {} of {} box dimensions", pair, pairs));
}

// Every vector may be absent, which is the same as empty.
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
  SHW_RETURN_IF_ERROR(copy_reads(*body, &plan.reads));
  SHW_RETURN_IF_ERROR(
      copy_records(body->objects(), "object read", &plan.objects,
                   [](const auto& record) { return ObjectRead{record.entry(), record.object()}; }));
  SHW_RETURN_IF_ERROR(copy_records(body->casts(), "cast", &plan.casts, [](const auto& record) {
    return CastNote{record.entry(), static_cast<DType>(record.stored()),
                    static_cast<DType>(record.wanted())};
  }));
  SHW_RETURN_IF_ERROR(copy_records(body->shapes(), "shape", &plan.shapes, [](const auto& record) {
    return ShapeNote{record.entry(), record.tensor()};
  }));
  SHW_ASSIGN_OR_RETURN(plan.loaded, copy_names(body->loaded()));
  SHW_ASSIGN_OR_RETURN(plan.missing, copy_names(body->missing()));
  SHW_ASSIGN_OR_RETURN(plan.unexpected, copy_names(body->unexpected()));
  return plan;
}

Result<WantList> copy_body(const wire::WantList* body) {
  WantList list;
  list.rank = body->rank();
  list.world_size = body->world_size();
  list.node = body->node();
  list.generation = copy_text(body->generation());
  list.round_bytes = body->round_bytes();
  list.blocks = copy_column<StoredBlock>(body->blocks());
  return list;
}

Result<ExchangePlan> copy_body(const wire::Exchange* body) {
  ExchangePlan plan;
  plan.rank = body->rank();
  plan.world_size = body->world_size();
  plan.generation = copy_text(body->generation());
  plan.span_bytes = body->span_bytes();
  plan.routes = copy_column<Route>(body->routes());
  plan.targets = copy_column<int32_t>(body->targets());
  plan.rounds = copy_column<uint64_t>(body->rounds());
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
  result.details = copy_column<std::byte>(body->details());
  result.file_sha256 = copy_column<std::byte>(body->file_sha256());
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

Result<Description> copy_body(const wire::Description* body) {
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

Result<LocalPart> copy_body(const wire::LocalPart* body) {
  internal::Owned owned;
  PartView view = internal::view_part(body, &owned);
  LocalPart part{view.rank, view.world_size, view.description_digest, {}, {}, {}, {}, {}, {}, {}};
  const auto assign = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
  std::apply(
      [&](auto&... to) {
        std::apply([&](const auto&... from) { (assign(to, from), ...); }, columns_of_part(view));
      },
      columns_of_part(part));
  return part;
}

Result<LocalPlan> copy_body(const wire::LocalSave* body) {
  LocalPlan plan;
  Result<Description> description =
      decode<Description>(internal::bytes_of_column(body->description()));
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

template <typename Plan>
Result<Plan> decode_body(const auto* body, std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(Plan plan, copy_body(body));
  const std::vector<std::string> findings = internal::findings_of(plan, 1);
  if (!findings.empty()) {
    return data_loss(fmt::format("the {} is damaged: {}",
                                 kKindNames[internal::index_in<Plan, AnyPlan>], findings[0]));
  }
  if constexpr (std::is_same_v<Plan, Description>) plan.digest = integrity::xxh3_128(buffer);
  return plan;
}

}  // namespace

Result<OpenedPlan> internal::open_plan(std::span<const std::byte> buffer) {
  OpenedPlan opened;
  SHW_ASSIGN_OR_RETURN(const std::span<const std::byte> framed,
                       check_buffer_frame(buffer, kPlanIdentifier, &opened.aligned));
  SHW_RETURN_IF_ERROR(verify(framed));
  const auto* root = flatbuffers::GetSizePrefixedRoot<wire::PlanBuffer>(framed.data());
  SHW_RETURN_IF_ERROR(check_version(*root));
  SHW_RETURN_IF_ERROR(find_body(*root, &opened.body));
  return opened;
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

template <typename Plan>
Result<Plan> decode(std::span<const std::byte> buffer) {
  constexpr size_t kIndex = internal::index_in<Plan, AnyPlan>;
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, internal::open_plan(buffer));
  if (const auto* body = std::get_if<kIndex>(&opened.body)) return decode_body<Plan>(*body, buffer);
  const std::string_view found = kKindNames[opened.body.index()];
  return invalid_argument(
             fmt::format("the plan buffer holds a {}, not a {}", found, kKindNames[kIndex]))
      .with_detail("expected", kKindNames[kIndex])
      .with_detail("found", found);
}
template Result<LocalPlan> decode<LocalPlan>(std::span<const std::byte>);
template Result<WriteList> decode<WriteList>(std::span<const std::byte>);
template Result<LoadPlan> decode<LoadPlan>(std::span<const std::byte>);
template Result<WriteResult> decode<WriteResult>(std::span<const std::byte>);
template Result<GlobalSavePlan> decode<GlobalSavePlan>(std::span<const std::byte>);
template Result<Description> decode<Description>(std::span<const std::byte>);
template Result<LocalPart> decode<LocalPart>(std::span<const std::byte>);
template Result<WantList> decode<WantList>(std::span<const std::byte>);
template Result<ExchangePlan> decode<ExchangePlan>(std::span<const std::byte>);

Result<AnyPlan> decode_plan(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const OpenedPlan opened, internal::open_plan(buffer));
  AnyPlan any;
  const auto decode_into = [&](const auto* body) -> Status {
    using Plan = std::remove_cvref_t<decltype(*copy_body(body))>;
    SHW_ASSIGN_OR_RETURN(any.emplace<Plan>(), decode_body<Plan>(body, buffer));
    return {};
  };
  SHW_RETURN_IF_ERROR(std::visit(decode_into, opened.body));
  return any;
}

std::vector<std::string> validate_plan(std::span<const std::byte> buffer) {
  const Result<OpenedPlan> opened = internal::open_plan(buffer);
  if (!opened.ok()) return {std::string(opened.status().message())};
  const auto validate = [](const auto* body) -> std::vector<std::string> {
    const auto plan = copy_body(body);
    if (!plan.ok()) return {std::string(plan.status().message())};
    return internal::findings_of(*plan, static_cast<size_t>(kMaxFindings));
  };
  return std::visit(validate, opened->body);
}

}  // namespace shardwright::plan
