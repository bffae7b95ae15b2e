// SPDX-License-Identifier: Apache-2.0
//
// One builder for many plans, and the memory that they leave in.
#include "core/plan/wire/plan_encoder.h"

#include <cstring>

#include "core/base/huge_pages.h"
#include "core/plan/wire/large_allocator_internal.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan {

struct PlanEncoder::Memory {
  Memory() : builder(4096, &allocator) {}
  internal::LargeAllocator allocator;
  flatbuffers::FlatBufferBuilder builder;
};

PlanEncoder::PlanEncoder() : memory_(std::make_unique<Memory>()) {}
PlanEncoder::~PlanEncoder() = default;

Result<std::span<const std::byte>> PlanEncoder::encode(std::span<const std::byte> description,
                                                       const LocalPart& part, PlanKind kind) {
  return internal::encode_into(&memory_->builder, description, part, kind);
}

PlanParts::PlanParts(size_t capacity)
    : capacity_(capacity),
      memory_(static_cast<std::byte*>(::operator new[](capacity + 1, kAlignment))) {
  advise_huge_pages(memory_.get(), capacity);
  memory_[0] = std::byte{0};
}

Status PlanParts::append_first(const GlobalSavePlan& plan) {
  if (size() != 0) return internal_error("the merged plan is not the first of the parts");
  // A builder fills its memory from the end, and the bound is a little more than what it needs.
  internal::LentMemory lent(std::span(memory_.get(), capacity_));
  flatbuffers::FlatBufferBuilder builder(merged_save_wire_bytes(plan), &lent);
  SHW_ASSIGN_OR_RETURN(const auto bytes, internal::encode_into(&builder, plan));
  return append(bytes);
}

Status PlanParts::append(std::span<const std::byte> part) {
  const uint64_t end = offsets_.back();
  if (part.size() > capacity_ - end)
    return internal_error("the plans of a merge outgrow the memory that was estimated for them");
  if (!part.empty()) std::memmove(memory_.get() + end, part.data(), part.size());
  offsets_.push_back(end + part.size());
  memory_[offsets_.back()] = std::byte{0};
  return {};
}

}  // namespace shardwright::plan
