// SPDX-License-Identifier: Apache-2.0
//
// The merged plan is encoded where it will lie: a large one is not copied to memory that nobody has
// touched yet.
#include "core/plan/wire/plan_parts.h"

#include <cstring>

#include "core/base/huge_pages.h"
#include "core/plan/wire/large_allocator_internal.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan {

PlanParts::PlanParts(size_t capacity)
    : capacity_(capacity),
      memory_(static_cast<std::byte*>(::operator new[](capacity + 1, kAlignment))) {
  advise_huge_pages(memory_.get(), capacity);
}

Result<PlanParts> PlanParts::create(const GlobalSavePlan& merged, uint64_t numbers) {
  const uint64_t bound = merged_save_wire_bytes(merged);
  PlanParts parts(bound + numbers * sizeof(uint32_t));
  // A builder fills its memory from the end, and the bound is a little more than what it needs.
  internal::LentMemory lent(std::span(parts.memory_.get(), bound));
  flatbuffers::FlatBufferBuilder builder(bound, &lent);
  SHW_ASSIGN_OR_RETURN(const auto bytes, internal::encode_into(&builder, merged));
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
