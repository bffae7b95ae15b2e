// SPDX-License-Identifier: Apache-2.0
//
// The ends of decoding: open_plan, whose checks end with the body, and findings_of, which says what
// is wrong with the meaning. Pure functions.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/plan/wire/wire.h"

namespace shardwright::wire {
struct LocalSave;
struct WriteList;
struct Load;
struct WriteResult;
struct MergedSave;
struct Description;
struct LocalPart;
struct WantList;
struct Exchange;
}  // namespace shardwright::wire

namespace shardwright::plan::internal {

inline constexpr uint32_t kPlanSchemaMajor = 1;
inline constexpr uint32_t kPlanSchemaMinor = 0;
inline constexpr char kPlanIdentifier[] = "SHWP";

// The tables of bodies. Like the plans of AnyPlan they stand in the order of the kinds.
using Body =
    std::variant<const wire::LocalSave*, const wire::WriteList*, const wire::Load*,
                 const wire::WriteResult*, const wire::MergedSave*, const wire::Description*,
                 const wire::LocalPart*, const wire::WantList*, const wire::Exchange*>;

// The place of Each among the alternatives.
template <typename Each, typename Variant>
inline constexpr size_t index_in = ~size_t{0};
template <typename Each, typename First, typename... Rest>
inline constexpr size_t index_in<Each, std::variant<First, Rest...>> =
    std::is_same_v<Each, First> ? 0 : 1 + index_in<Each, std::variant<Rest...>>;

struct OpenedPlan {
  Body body;  // never null; in the caller's buffer or in aligned
  std::vector<std::byte> aligned;
};
// Exactly the body that kind names is present in the buffer.
Result<OpenedPlan> open_plan(std::span<const std::byte> buffer);

// The part where it lies; columns that are not aligned are copied into owned.
using Owned = std::vector<std::shared_ptr<const void>>;
PartView view_part(const wire::LocalPart* body, Owned* owned);

// At most limit sentences; empty = sound.
std::vector<std::string> findings_of(const WriteList& list, size_t limit);
std::vector<std::string> findings_of(const LoadPlan& plan, size_t limit);
std::vector<std::string> findings_of(const WriteResult& result, size_t limit);
std::vector<std::string> findings_of(const GlobalSavePlan& plan, size_t limit);
std::vector<std::string> findings_of(const WantList& list, size_t limit);
std::vector<std::string> findings_of(const ExchangePlan& plan, size_t limit);
inline std::vector<std::string> findings_of(const LocalPlan& plan, size_t limit) {
  return part_findings(view_of(plan.part), &plan.description, limit);
}
inline std::vector<std::string> findings_of(const Description& description, size_t limit) {
  return description_findings(description, limit);
}
inline std::vector<std::string> findings_of(const LocalPart& part, size_t limit) {
  return part_findings(view_of(part), nullptr, limit);
}

}  // namespace shardwright::plan::internal
