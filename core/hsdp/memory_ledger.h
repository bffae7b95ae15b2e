// SPDX-License-Identifier: Apache-2.0
//
// MemoryLedger: how many bytes of which kind each unit holds, now and at most. The same books are
// kept of memory that is there and of memory that a schedule would need. Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace shardwright::hsdp {

// What memory of a unit is for. Numbers are those of the C surface.
enum class BufferKind : int32_t {
  kShard = 0,           // parameters of this rank, padded
  kCastStaging = 1,     // of the shard, in the dtype that travels
  kGathered = 2,        // shards of all ranks
  kParameters = 3,      // whole
  kLocalGradient = 4,   // whole, summed on this rank
  kPacked = 5,          // gradients as parts for all ranks
  kLanding = 6,         // parts of all ranks before they are added
  kScattered = 7,       // the sum of the parts
  kPartial = 8,         // the same, waiting for the replicas
  kSecondary = 9,       // 1/n of the parameters, kept from forward to backward
  kShardGradient = 10,  // of this rank, padded
};
inline constexpr size_t kBufferKinds = 11;

// "cast staging"; "unknown" for a number outside the list.
std::string_view buffer_kind_name(BufferKind kind);

struct MemoryUse {
  uint64_t current_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t current_count = 0;  // buffers
  uint64_t total_count = 0;    // buffers that there ever were
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

struct MemoryStats {
  MemoryUse total;
  std::array<MemoryUse, kBufferKinds> by_kind{};
  std::map<uint64_t, MemoryUse> by_unit;

  const MemoryUse& of(BufferKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
};

class MemoryLedger {
 public:
  // Makes the unit's book; add and what follows need no memory then.
  void open(uint64_t unit) { stats_.by_unit.try_emplace(unit); }
  void add(BufferKind kind, uint64_t unit, uint64_t bytes);
  // What was added, once.
  void remove(BufferKind kind, uint64_t unit, uint64_t bytes) noexcept;
  // A buffer is now another kind.
  void move(BufferKind from, BufferKind to, uint64_t bytes) noexcept;
  // From here on peaks are those of what comes; a buffer that is there counts.
  void reset_peaks() noexcept;
  const MemoryStats& stats() const { return stats_; }

 private:
  MemoryStats stats_;
};

}  // namespace shardwright::hsdp
