// SPDX-License-Identifier: Apache-2.0
//
// The checks of a plan buffer up to its meaning, in this order: frame (length, alignment, prefix,
// identifier), verifier with explicit limits, schema version, kind and body.
#include <algorithm>

#include <fmt/format.h>

#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan {
namespace {

constexpr flatbuffers::uoffset_t kMaxDepth = 32;

Status verify(std::span<const std::byte> buffer) {
  flatbuffers::Verifier::Options options;
  options.max_depth = kMaxDepth;
  options.max_tables =
      static_cast<flatbuffers::uoffset_t>(std::max<size_t>(64, buffer.size() / 16));
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

// Number of bodies that are present, and whether kind's is.
Status check_body(const wire::PlanBuffer& root) {
  const std::pair<wire::PlanBufferKind, bool> bodies[] = {
      {wire::PlanBufferKind::LocalSave, root.local_save() != nullptr},
      {wire::PlanBufferKind::WriteList, root.write_list() != nullptr},
      {wire::PlanBufferKind::Load, root.load() != nullptr},
      {wire::PlanBufferKind::WriteResult, root.write_result() != nullptr},
      {wire::PlanBufferKind::MergedSave, root.merged_save() != nullptr},
      {wire::PlanBufferKind::Description, root.description() != nullptr},
      {wire::PlanBufferKind::LocalPart, root.local_part() != nullptr},
  };
  bool known = false;
  for (const auto& [kind, present] : bodies) {
    const bool wanted = kind == root.kind();
    known |= wanted;
    if (wanted != present) {
      return data_loss(fmt::format("a plan buffer of kind {} {} the body of kind {}",
                                   static_cast<int>(root.kind()), present ? "has" : "lacks",
                                   static_cast<int>(kind)));
    }
  }
  if (known) return {};
  return unimplemented(fmt::format("the plan buffer has kind {}, which this version does not know",
                                   static_cast<int>(root.kind())));
}

}  // namespace

Result<internal::OpenedPlan> internal::open_plan(std::span<const std::byte> buffer) {
  OpenedPlan opened;
  SHW_ASSIGN_OR_RETURN(const std::span<const std::byte> framed,
                       check_buffer_frame(buffer, kPlanIdentifier, &opened.aligned));
  SHW_RETURN_IF_ERROR(verify(framed));
  opened.root = flatbuffers::GetSizePrefixedRoot<wire::PlanBuffer>(framed.data());
  SHW_RETURN_IF_ERROR(check_version(*opened.root));
  SHW_RETURN_IF_ERROR(check_body(*opened.root));
  opened.kind = static_cast<PlanKind>(opened.root->kind());
  return opened;
}

Result<PlanKind> plan_kind(std::span<const std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const internal::OpenedPlan opened, internal::open_plan(buffer));
  return opened.kind;
}

}  // namespace shardwright::plan
