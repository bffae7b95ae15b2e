// SPDX-License-Identifier: Apache-2.0
//
// The steps of the contract that plan by descriptions: layouts, shards of grids, entries, merges,
// global plans.
#pragma once

#include <map>
#include <string>

#include "tests/bindings/c/handles.h"
#include "tests/bindings/c/values.h"

namespace contract {

// What one rank says for a global plan.
struct Described {
  Bytes description, digest, part;
};

class PlanningSteps {
 public:
  // `plans` are the bytes that the steps keep by id.
  explicit PlanningSteps(std::map<std::string, Bytes>* plans) : plans_(plans) {}
  // Runs the step and returns true, or returns false when it is none of these.
  bool run(const Json& step);

 private:
  void make_layout(const Json& step);
  void check_pieces(const Json& step);
  void describe(const Json& step);
  void merge(const Json& step);
  void match(const Json& step);
  void compare(const Json& step);
  void describe_rank(const Json& step);
  void make_global_plan(const Json& step);
  void check_global_plan(const Json& step);
  void write_list(const Json& step);
  void expand(const Json& step);
  Plan plan(const Json& id) const;
  void keep(const Json& ids, const shw_buffer* parts);

  std::map<std::string, Bytes>* plans_;
  std::map<std::string, Layout> layouts_;
  std::map<std::string, Described> described_;
  std::map<std::string, GlobalPlan> global_plans_;
};

}  // namespace contract
