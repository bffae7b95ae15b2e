// SPDX-License-Identifier: Apache-2.0
//
// Plans out of descriptions in flat arrays, and back. Hosts that have no state of ours plan with
// these. Pure functions; every number of the arrays is checked.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/entry_arrays.h"
#include "core/plan/local_view.h"
#include "core/plan/plan_options.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

// Rank and world size of a local plan (0 = not known: it may be merged at any place), the text that
// all ranks must have alike, and kinds by pattern.
struct DescribeRules {
  int32_t rank = 0;
  int32_t world_size = 1;
  std::string_view agreement;
  std::vector<KindPattern> kinds;
};

// INVALID_ARGUMENT naming the entry, OUT_OF_RANGE for a box that leaves its tensor, ALREADY_EXISTS
// for a name that comes twice, UNIMPLEMENTED for a dtype without a name.
Result<LocalSavePlan> describe_local(const EntryArrays& entries, const DescribeRules& rules);
// What is stored: place = rank, no order, nothing secondary.
Result<GlobalSavePlan> describe_merged(const EntryArrays& entries,
                                       std::span<const KindPattern> kinds);

// The arrays of a plan, filled from its columns: numbers as the kind of plan says. Owned columns;
// attributes and texts are copies too.
class EntryColumns {
 public:
  // Of a merged plan: numbers are ranks.
  explicit EntryColumns(const GlobalSavePlan& plan);
  // Of a local plan: numbers are pieces, of a kept one those of the chunks.
  EntryColumns(const LocalView& view, bool kept);
  EntryArrays arrays() const;

 private:
  enum class Numbers { kPlace, kNumber };
  template <typename Columns>
  void add_all(const Columns& catalog, const ListingView& listing,
               std::span<const Digest128> tensor_digests, std::span<const Digest128> object_digests,
               Numbers numbers);
  template <typename Columns>
  void add_tensor(const Columns& catalog, size_t tensor, Numbers numbers);
  template <typename Columns>
  void add_object(const Columns& catalog, size_t object, Numbers numbers);
  void add_entry(std::string_view name, std::string_view path, EntryKind kind);
  void add_digest(std::span<const Digest128> digests, size_t index);

  std::vector<char> names_, paths_, attributes_;
  std::vector<uint64_t> name_offsets_ = {0}, path_offsets_ = {0}, attribute_offsets_ = {0};
  std::vector<int32_t> dtypes_, kinds_;
  std::vector<int64_t> shapes_, box_offsets_, box_sizes_;
  std::vector<uint64_t> shape_offsets_ = {0}, box_ranges_ = {0};
  std::vector<uint64_t> numbers_, order_, object_sizes_;
  std::vector<uint8_t> secondary_;
  std::vector<Digest128> digests_;
};

}  // namespace shardwright::plan
