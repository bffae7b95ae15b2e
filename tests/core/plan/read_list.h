// SPDX-License-Identifier: Apache-2.0
//
// The reads of a load plan as a list, and damage to them written as changes of it.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "core/plan/load_plan.h"

namespace shardwright::plan::test {

using ReadList = std::vector<ReadItem>;

inline ReadList reads_of(const LoadPlan& plan) {
  ReadList reads;
  for (size_t i = 0; i < plan.reads.size(); ++i) reads.push_back(plan.reads[i]);
  return reads;
}

inline void append_read(const ReadItem& read, ReadColumn* reads) {
  reads->append_blank(1, read.box.sizes.size());
  const size_t last = reads->size() - 1;
  reads->key(last) = {read.chunk, read.entry, read.piece};
  std::ranges::copy(read.box.offsets, reads->numbers(last));
  std::ranges::copy(read.box.sizes, reads->numbers(last) + read.box.sizes.size());
}

// What changes the reads of a load plan as a list.
inline std::function<void(LoadPlan&)> on_reads(std::function<void(ReadList&)> change) {
  return [change = std::move(change)](LoadPlan& plan) {
    ReadList reads = reads_of(plan);
    change(reads);
    plan.reads = ReadColumn();
    for (const ReadItem& read : reads) append_read(read, &plan.reads);
  };
}

}  // namespace shardwright::plan::test
