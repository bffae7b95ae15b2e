// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/memory_ledger.h"

#include <algorithm>

namespace shardwright::hsdp {
namespace {

constexpr std::array<std::string_view, kBufferKinds> kBufferKindNames = {
    "shard",   "cast staging", "gathered", "parameters", "local gradient", "packed",
    "landing", "scattered",    "partial",  "secondary",  "shard gradient"};

void take(uint64_t bytes, MemoryUse* use) {
  use->current_bytes += bytes;
  use->peak_bytes = std::max(use->peak_bytes, use->current_bytes);
  ++use->current_count;
  ++use->total_count;
}

void give_back(uint64_t bytes, MemoryUse* use) {
  use->current_bytes -= bytes;
  --use->current_count;
}

}  // namespace

std::string_view buffer_kind_name(BufferKind kind) {
  const auto number = static_cast<size_t>(kind);
  return number < kBufferKinds ? kBufferKindNames[number] : "unknown";
}

void MemoryLedger::add(BufferKind kind, uint64_t unit, uint64_t bytes) {
  take(bytes, &stats_.by_unit[unit]);
  take(bytes, &stats_.by_kind[static_cast<size_t>(kind)]);
  take(bytes, &stats_.total);
}

void MemoryLedger::remove(BufferKind kind, uint64_t unit, uint64_t bytes) noexcept {
  if (const auto found = stats_.by_unit.find(unit); found != stats_.by_unit.end())
    give_back(bytes, &found->second);
  give_back(bytes, &stats_.by_kind[static_cast<size_t>(kind)]);
  give_back(bytes, &stats_.total);
}

void MemoryLedger::move(BufferKind from, BufferKind to, uint64_t bytes) noexcept {
  give_back(bytes, &stats_.by_kind[static_cast<size_t>(from)]);
  take(bytes, &stats_.by_kind[static_cast<size_t>(to)]);
}

void MemoryLedger::reset_peaks() noexcept {
  const auto reset = [](MemoryUse* use) { use->peak_bytes = use->current_bytes; };
  reset(&stats_.total);
  for (MemoryUse& use : stats_.by_kind) reset(&use);
  for (auto& [unit, use] : stats_.by_unit) reset(&use);
}

}  // namespace shardwright::hsdp
