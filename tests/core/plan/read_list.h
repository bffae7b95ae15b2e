// SPDX-License-Identifier: Apache-2.0
//
// Damage to the reads of a load plan, written as changes of a list.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/plan/load_plan.h"

namespace shardwright::plan::test {

// What changes the reads of a load plan as a list.
using ReadList = std::vector<ReadItem>;
inline std::function<void(LoadPlan&)> on_reads(std::function<void(ReadList&)> change) {
  return [change = std::move(change)](LoadPlan& plan) {
    ReadList reads;
    for (const ReadItem& read : plan.reads) reads.push_back(read);
    change(reads);
    plan.reads = ReadColumn();
    for (const ReadItem& read : reads) plan.reads.append(read);
  };
}

}  // namespace shardwright::plan::test
