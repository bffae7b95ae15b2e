// SPDX-License-Identifier: Apache-2.0
//
// Appends to the columns, and reads that lie in a box of them.
#include "core/plan/read_column.h"

#include <algorithm>

namespace shardwright::plan {

void ReadColumn::append_blank(size_t count, size_t dimension_count) {
  const size_t first = records_.size();
  uint64_t begin = numbers_.size();
  numbers_.resize(begin + count * 2 * dimension_count);
  records_.resize(first + count);
  for (size_t i = first; i < records_.size(); ++i, begin += 2 * dimension_count) {
    records_[i].place = begin << 8 | dimension_count;
  }
}

void ReadColumn::sort_from(size_t first) {
  const auto begin = records_.begin() + static_cast<std::ptrdiff_t>(first);
  const auto before = [](const Record& a, const Record& b) { return a.key < b.key; };
  if (!std::is_sorted(begin, records_.end(), before)) std::sort(begin, records_.end(), before);
}

}  // namespace shardwright::plan
