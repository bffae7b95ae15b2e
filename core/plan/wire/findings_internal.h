// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with a plan, as sentences up to a limit, and the checks that kinds of plans share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/plan/local_view.h"

namespace shardwright::plan::internal {

// Sentences up to a limit.
class Findings {
 public:
  explicit Findings(size_t limit) : limit_(limit) {}
  bool full() const { return list_.size() >= limit_; }
  bool empty() const { return list_.empty(); }
  size_t room() const { return limit_ - list_.size(); }
  std::vector<std::string> take() { return std::move(list_); }

  template <typename... Arguments>
  void add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (!full()) list_.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
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

void check_rank(int32_t rank, int32_t world_size, Findings* findings);
// The catalog is sound.
void check_listing(const ListingView& listing, const CatalogView& catalog, Findings* findings);

// At most limit sentences about a local or kept plan; empty = sound. table_is_known: texts, extents
// and tensor records were proved with another view of the same table.
std::vector<std::string> local_view_findings(const LocalView& view, bool kept, size_t limit,
                                             bool table_is_known);

}  // namespace shardwright::plan::internal
