// SPDX-License-Identifier: Apache-2.0
//
// The order in which ranks of a job declare their parameters, as its buckets prove it: each buffer
// holds those of one rank in reverse order. Lists of several ranks come together by the places of
// their names (declared_order.h) where they share a layer, and by their layers elsewhere. Values.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/reshard/assign_buckets.h"
#include "core/reshard/declared_order.h"
#include "core/reshard/target_job.h"

namespace shardwright::reshard {

// A parameter of all tensor-parallel ranks, each of which has a part of its rows.
struct DeclaredParameter {
  std::vector<size_t> tensors;  // a rank holds its parts of them one after the other
  Box box;                      // that one rank held of the first
  std::string dtypes;           // as Bucket::dtypes
  std::vector<std::string> states;
  std::optional<int64_t> layer = {};
  std::optional<DeclaredPlace> place = {};

  // The indexes of its box in the dimensions in front, of which it has at most all.
  Dims leading(size_t dimensions) const {
    return Dims(box.offsets.span().first(std::min(dimensions, box.offsets.size())));
  }
};

struct DeclaredInput {
  const AssignInput& known;
  const std::vector<Assigned>& assigned;
  const JobShape& shape;                    // of the job that saved
  std::optional<bool> has_grouped_experts;  // a parameter of all experts, then the next one
};

class DeclaredLists {
 public:
  explicit DeclaredLists(const DeclaredInput& input);

  const std::vector<DeclaredParameter>& parameters() const { return parameters_; }
  // In the order of the buffers that have them.
  const std::vector<std::string>& dtypes() const { return dtypes_; }
  // Numbers of the parameters that are wanted, in the order of their declaration by one rank.
  // FAILED_PRECONDITION naming two of which it is not known.
  Result<std::vector<size_t>> in_order(const std::vector<bool>& wanted) const;

 private:
  using List = std::vector<size_t>;

  void add_list(List places, const DeclaredInput& input);
  void find_grouped(const List& list);
  std::optional<bool> is_before(size_t a, size_t b) const;
  Status check_order(const std::vector<List>& lists) const;
  Status not_known(size_t a, size_t b) const;

  const plan::Catalog& catalog_;
  std::vector<DeclaredParameter> parameters_;
  std::vector<List> lists_;
  std::vector<std::string> dtypes_;
  std::optional<bool> grouped_;
};

}  // namespace shardwright::reshard
