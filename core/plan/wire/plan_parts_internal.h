// SPDX-License-Identifier: Apache-2.0
//
// The checks of a plan buffer, cut so that decoding and listing findings share them: open_plan ends
// with the schema version; copy_... takes a verified body to values and refuses only what cannot be
// represented; ..._findings says what is wrong with the meaning. Pure functions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plan/wire/wire.h"

namespace flatbuffers {
template <bool Is64Aware>
class FlatBufferBuilderImpl;
using FlatBufferBuilder = FlatBufferBuilderImpl<false>;
}  // namespace flatbuffers
namespace shardwright::wire {
struct PlanBuffer;
struct LocalSave;
struct WriteList;
struct Load;
struct WriteResult;
struct MergedSave;
struct Description;
struct LocalPart;
}  // namespace shardwright::wire

namespace shardwright::plan::internal {

inline constexpr uint32_t kPlanSchemaMajor = 1;
inline constexpr uint32_t kPlanSchemaMinor = 0;
inline constexpr char kPlanIdentifier[] = "SHWP";

struct OpenedPlan {
  PlanKind kind = PlanKind::kLocalSave;
  const wire::PlanBuffer* root = nullptr;  // into the caller's buffer or into aligned
  std::vector<std::byte> aligned;
};
// Exactly the body that kind names is present in a buffer that this returns.
Result<OpenedPlan> open_plan(std::span<const std::byte> buffer);

Result<WriteList> copy_write_list(const wire::WriteList* body);
Result<LoadPlan> copy_load(const wire::Load* body);
Result<WriteResult> copy_write_result(const wire::WriteResult* body);
Result<GlobalSavePlan> copy_merged_save(const wire::MergedSave* body);
Result<LocalPlan> copy_local_save(const wire::LocalSave* body);
Result<Description> copy_description(const wire::Description* body);
LocalPart copy_part(const wire::LocalPart* body);
// The part where it lies; columns that are not aligned are copied into owned.
using Owned = std::vector<std::shared_ptr<const void>>;
PartView view_part(const wire::LocalPart* body, Owned* owned);

// Encodes into the builder, which is cleared first; the bytes are its own.
Result<std::span<const std::byte>> encode_into(flatbuffers::FlatBufferBuilder* builder,
                                               const GlobalSavePlan& plan);
// description: a plan buffer of its own. kind: kLocalSave or kKeptSave.
Result<std::span<const std::byte>> encode_into(flatbuffers::FlatBufferBuilder* builder,
                                               std::span<const std::byte> description,
                                               const LocalPart& part, PlanKind kind);

// At most limit sentences; empty = sound.
std::vector<std::string> local_save_findings(const LocalPlan& plan, size_t limit);
std::vector<std::string> write_list_findings(const WriteList& list, size_t limit);
std::vector<std::string> load_findings(const LoadPlan& plan, size_t limit);
std::vector<std::string> write_result_findings(const WriteResult& result, size_t limit);
std::vector<std::string> merged_save_findings(const GlobalSavePlan& plan, size_t limit);

}  // namespace shardwright::plan::internal
