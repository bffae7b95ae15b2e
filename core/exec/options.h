// SPDX-License-Identifier: Apache-2.0
//
// Options of save and load calls, words and defaults of the public options table. options_text
// renders the ones that all ranks must share, one "option=value" per line; its digest travels with
// the local plan. Values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/concurrency/thread_pool.h"
#include "core/plan/plan_options.h"

namespace shardwright::exec {

enum class Overwrite : int32_t { kReplace = 0, kRefuse = 1 };
enum class Durability : int32_t { kFull = 0, kNone = 1 };
enum class VerifyRule : int32_t { kOnRead = 0, kOff = 1 };
// Large reads: what lies in the page cache is copied from there and the rest comes from the device
// round it; all from the device; all through the page cache.
enum class ReadPath : int32_t { kAuto = 0, kDirect = 1, kBuffered = 2 };

// Blocks that several nodes want: one of them reads and sends them where that ends first; never;
// always.
enum class ExchangeRule : int32_t { kAuto = 0, kOff = 1, kAlways = 2 };

class ItemChecksums;

struct ReadRules {
  constexpr ReadRules(VerifyRule verifies = VerifyRule::kOnRead,  // NOLINT: implicit on purpose
                      ReadPath takes = ReadPath::kAuto)
      : verify(verifies), path(takes) {}
  VerifyRule verify;
  ReadPath path;
  ItemChecksums* checksums = nullptr;  // of items that come by several calls; outlives the call
};
// What is stored, not what the page cache says of it.
inline constexpr ReadRules kFromDevice{VerifyRule::kOnRead, ReadPath::kDirect};

struct SaveOptions {
  plan::SaveRules rules;
  Overwrite overwrite = Overwrite::kReplace;
  Durability durability = Durability::kFull;
  bool digests = true;
  int64_t deadline_ns =
      0;  // relative; 0 = none (collectives: kDefaultCollectiveDeadlineNs), negative = no limit
  int32_t keep_generations = 1;  // >= 1
  uint32_t file_mode = 0;
  std::map<std::string, std::string> metadata;
  std::string trace_path;         // "" = no trace
  std::string format = "native";  // others than those that can be saved: UNIMPLEMENTED naming them
  uint64_t max_shard_bytes = 0;   // of one file of formats that ranks share files of; 0 = default
  bool common_as_object = false;  // of a format that has a common state: not in a file of its own
  // The SHA-256 of each file stands in a list beside them; of formats that have such a list.
  bool lists_digests = false;
  // Of jobs, and of this rank alone: the host's memory is read until the job is staged, and nothing
  // is copied first; what all but that copy runs at.
  bool hold = false;
  ThreadPriority priority = ThreadPriority::kNormal;
};

struct LoadOptions {
  plan::LoadRules rules;
  VerifyRule verify = VerifyRule::kOnRead;
  ReadPath read_path = ReadPath::kAuto;
  ExchangeRule exchange = ExchangeRule::kAuto;
  int64_t deadline_ns = 0;
  std::string trace_path;
};

std::string shared_options_text(const SaveOptions& options);
std::string shared_options_text(const LoadOptions& options);
// INVALID_ARGUMENT or UNIMPLEMENTED naming option and value.
Status check_options(const SaveOptions& options);
Status check_options(const LoadOptions& options);

}  // namespace shardwright::exec
