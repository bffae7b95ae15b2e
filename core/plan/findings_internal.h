// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a plan, as sentences up to a limit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/plan/listing.h"

namespace shardwright::plan::internal {

// One thread.
class Findings {
 public:
  explicit Findings(size_t limit) : limit_(limit) {}
  bool full() const { return list_.size() >= limit_; }
  bool empty() const { return list_.empty(); }
  size_t room() const { return limit_ - list_.size(); }
  std::vector<std::string> take() { return std::move(list_); }

  // False, for checks that end with their first finding.
  template <typename... Arguments>
  bool add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (!full()) list_.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    return false;
  }

  void add_all(std::vector<std::string> more) {
    for (std::string& each : more) {
      if (!full()) list_.push_back(std::move(each));
    }
  }

 private:
  size_t limit_;
  std::vector<std::string> list_;
};

// What a listing counts.
struct ListedCounts {
  size_t tensors = 0;
  size_t objects = 0;
  size_t boxes = 0;
  size_t items = 0;
};
void check_listing(const ListingView& listing, const ListedCounts& counts, Findings* findings);

void check_rank(int32_t rank, int32_t world_size, Findings* findings);

}  // namespace shardwright::plan::internal
