// SPDX-License-Identifier: Apache-2.0
//
// EntryColumns: the entries of a plan as flat arrays. Owned columns; immutable, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/plan/entry_arrays.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {

class EntryColumns {
 public:
  // Of a merged plan: numbers are ranks.
  explicit EntryColumns(const GlobalSavePlan& plan);
  // Of a local plan: numbers are pieces.
  explicit EntryColumns(const LocalPlan& plan);
  EntryArrays arrays() const;

 private:
  template <typename AddTensor, typename AddObject>
  void add_all(const Catalog& catalog, const ListingView& listing, const AddTensor& add_tensor,
               const AddObject& add_object);
  void add_box(const Box& box, uint64_t number);
  // Behind its boxes.
  void end_entry(std::string_view name, std::string_view path, EntryKind kind,
                 std::string_view attribute);

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
