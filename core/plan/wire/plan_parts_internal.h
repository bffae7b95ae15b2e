// SPDX-License-Identifier: Apache-2.0
//
// The checks of a plan buffer, cut so that decoding and listing findings share them: open_plan ends
// with the schema version; copy_body takes a verified body to values and refuses only what cannot
// be represented; findings_of says what is wrong with the meaning. Pure functions.
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

Result<WriteList> copy_body(const wire::WriteList* body);
Result<LoadPlan> copy_body(const wire::Load* body);
Result<WriteResult> copy_body(const wire::WriteResult* body);
Result<GlobalSavePlan> copy_body(const wire::MergedSave* body);
Result<LocalPlan> copy_body(const wire::LocalSave* body);
Result<Description> copy_body(const wire::Description* body);
Result<LocalPart> copy_body(const wire::LocalPart* body);
// The part where it lies; columns that are not aligned are copied into owned.
using Owned = std::vector<std::shared_ptr<const void>>;
PartView view_part(const wire::LocalPart* body, Owned* owned);

// Encodes into the builder, which is cleared first; the bytes are its own.
Result<std::span<const std::byte>> encode_into(flatbuffers::FlatBufferBuilder* builder,
                                               const GlobalSavePlan& plan);

// At most limit sentences; empty = sound.
std::vector<std::string> findings_of(const WriteList& list, size_t limit);
std::vector<std::string> findings_of(const LoadPlan& plan, size_t limit);
std::vector<std::string> findings_of(const WriteResult& result, size_t limit);
std::vector<std::string> findings_of(const GlobalSavePlan& plan, size_t limit);
std::vector<std::string> findings_of(const LocalPlan& plan, size_t limit);
std::vector<std::string> findings_of(const Description& description, size_t limit);
std::vector<std::string> findings_of(const LocalPart& part, size_t limit);

}  // namespace shardwright::plan::internal
