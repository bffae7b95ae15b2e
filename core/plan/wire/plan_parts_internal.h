// SPDX-License-Identifier: Apache-2.0
//
// The doors of a plan buffer, cut so that decoding and listing findings share them: open_plan ends
// with the schema version; copy_... takes a verified body to values and refuses only what cannot be
// represented; ..._findings says what is wrong with the meaning. Pure functions.
#pragma once

#include <cstddef>
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
struct SymbolicSave;
struct SymbolicPart;
struct SymbolicLocal;
}  // namespace shardwright::wire

namespace shardwright::plan::internal {

inline constexpr uint32_t kPlanSchemaMajor = 1;
inline constexpr uint32_t kPlanSchemaMinor = 1;
// Minor version that brought listings, kept plans and merged descriptions. Buffers without them say
// 0, so that older readers take them.
inline constexpr uint32_t kListingSchemaMinor = 1;
inline constexpr char kPlanIdentifier[] = "SHWP";
inline constexpr uint32_t kMaxCauses =
    16;  // links of a failure on the wire; the outermost are kept

struct OpenedPlan {
  PlanKind kind = PlanKind::kLocalSave;
  const wire::PlanBuffer* root = nullptr;  // into the caller's buffer or into aligned
  std::vector<std::byte> aligned;
};
// Exactly the body that kind names is present in a buffer that this returns.
Result<OpenedPlan> open_plan(std::span<const std::byte> buffer);

Result<LocalSavePlan> copy_local_save(const wire::LocalSave* body);
Result<WriteList> copy_write_list(const wire::WriteList* body);
Result<LoadPlan> copy_load(const wire::Load* body);
Result<WriteResult> copy_write_result(const wire::WriteResult* body);
Result<GlobalSavePlan> copy_merged_save(const wire::MergedSave* body);
Result<SymbolicDescription> copy_symbolic_save(const wire::SymbolicSave* body);
Result<SymbolicPart> copy_symbolic_part(const wire::SymbolicPart* body);
Result<LocalSymbolicPlan> copy_symbolic_local(const wire::SymbolicLocal* body);

// Encodes into the builder, which is cleared first; the bytes are its own.
Result<std::span<const std::byte>> encode_into(flatbuffers::FlatBufferBuilder* builder,
                                               const LocalSavePlan& plan);
Result<std::span<const std::byte>> encode_into(flatbuffers::FlatBufferBuilder* builder,
                                               const GlobalSavePlan& plan);

// At most limit sentences; empty = sound.
std::vector<std::string> local_save_findings(const LocalSavePlan& plan, size_t limit);
std::vector<std::string> write_list_findings(const WriteList& list, size_t limit);
std::vector<std::string> load_findings(const LoadPlan& plan, size_t limit);
std::vector<std::string> write_result_findings(const WriteResult& result, size_t limit);
std::vector<std::string> merged_save_findings(const GlobalSavePlan& plan, size_t limit);
std::vector<std::string> symbolic_part_findings(const SymbolicPart& part, size_t limit);
std::vector<std::string> symbolic_local_findings(const LocalSymbolicPlan& plan, size_t limit);

}  // namespace shardwright::plan::internal
