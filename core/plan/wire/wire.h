// SPDX-License-Identifier: Apache-2.0
//
// Plan buffers: size-prefixed FlatBuffers with identifier SHWP. Decoding is a fixed order of
// checks: length, alignment (copied when wrong), size prefix, identifier, FlatBuffers verifier with
// explicit limits, schema version, meaning (check_catalog). INVALID_ARGUMENT for what is no plan
// buffer or another kind, DATA_LOSS for damage, UNIMPLEMENTED for a newer version (detail
// needed_version). Records are struct vectors: 40 bytes per chunk. Pure, any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/plan/exchange_plan.h"
#include "core/plan/load_plan.h"
#include "core/plan/local_plan.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

enum class PlanKind : int32_t {
  kLocalSave = 1,
  kWriteList = 2,
  kLoad = 3,
  kWriteResult = 4,
  kMergedSave = 5,
  kDescription = 6,
  kLocalPart = 7,
  kWantList = 8,
  kExchange = 9
};
using Bytes = std::vector<std::byte>;

inline constexpr size_t kSha256Bytes = 32;

// What a rank wrote; travels to the coordinator before the commit.
struct WriteResult {
  int32_t rank = 0;
  std::string generation;
  Digest128 plan_digest{};
  bool has_file = false;  // false when the rank had nothing to write
  uint64_t file_bytes = 0;
  uint64_t index_position = 0;  // of SHWI in the file
  uint64_t index_bytes = 0;
  Digest128 index_digest{};
  uint64_t payload_bytes = 0;  // of all items
  bool directory_sync_supported = true;
  std::vector<std::byte> details;      // of the format: what only the rank knows, such as places
  std::vector<std::byte> file_sha256;  // of all bytes of the file; empty = was not asked for
};

Result<Bytes> encode(const LocalPlan& plan);
Result<Bytes> encode(const Description& description);
Result<Bytes> encode(const LocalPart& part);
Result<Bytes> encode(const WriteList& list);
Result<Bytes> encode(const LoadPlan& plan);
Result<Bytes> encode(const WriteResult& result);
Result<Bytes> encode(const WantList& list);
Result<Bytes> encode(const ExchangePlan& plan);
Result<Bytes> encode(const GlobalSavePlan& plan);  // without lists, for tools

// 16 bytes that two descriptions share exactly when they are equal: digest of the plan buffer.
Result<Digest128> description_digest(const Description& description);
// Digest of what the plan describes: equal for equal entries in equal order on equal ranks,
// whatever their content digests are. RESOURCE_EXHAUSTED when the plan fits no buffer.
Result<Digest128> items_digest(const LocalPlan& plan);

// Plans in the order of their kinds.
using AnyPlan = std::variant<LocalPlan, WriteList, LoadPlan, WriteResult, GlobalSavePlan,
                             Description, LocalPart, WantList, ExchangePlan>;
// One of them. The part of a LocalPlan fits its description; make_rank_plans finds out whether a
// LocalPart by itself does. A GlobalSavePlan has no writes; its covers are proved, unless it is one
// of merged descriptions (no generation).
template <typename Plan>
Result<Plan> decode(std::span<const std::byte> buffer);
// Whatever the buffer holds.
Result<AnyPlan> decode_plan(std::span<const std::byte> buffer);

// buffers: local plans in rank order, which must outlive what is returned. Descriptions with equal
// bytes are read once. Failures name the rank: those of the checks above, and INVALID_ARGUMENT
// for a plan of another position, options that differ, or no plan at all.
Result<RankPlans> open_local_saves(std::span<const std::span<const std::byte>> buffers);

// Every finding instead of the first, at most kMaxFindings; empty = valid.
std::vector<std::string> validate_plan(std::span<const std::byte> buffer);
// The plan as JSON text for people and tools (kind, rank, counts, items up to item_limit).
Result<std::string> plan_json(std::span<const std::byte> buffer, uint64_t item_limit);

}  // namespace shardwright::plan
