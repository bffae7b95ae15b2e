// SPDX-License-Identifier: Apache-2.0
//
// Run lengths first, then the leading pair of runs as often as it comes again.
#include "core/plan/grid/dim_split.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"

namespace shardwright::plan {
namespace {

// How often the first two of the runs stand behind each other from the beginning.
uint64_t leading_pairs(std::span<const PartRun> runs) {
  if (runs.size() < 4) return 0;
  uint64_t pairs = 1;
  while (2 * pairs + 1 < runs.size() && runs[2 * pairs] == runs[0] &&
         runs[2 * pairs + 1] == runs[1])
    ++pairs;
  return pairs < 2 ? 0 : pairs;
}

void append_run(std::vector<PartRun>* runs, const PartRun& run) {
  if (run.count == 0) return;
  if (!runs->empty() && runs->back().size == run.size) {
    runs->back().count += run.count;
  } else {
    runs->push_back(run);
  }
}

// Adds count times size to the sum; false when that does not fit.
bool add_product(uint64_t count, int64_t size, int64_t* sum) {
  int64_t parts = 0;
  int64_t indices = 0;
  return checked_cast(count, &parts) && checked_multiply(parts, size, &indices) &&
         checked_add(*sum, indices, sum);
}

}  // namespace

DimSplit::DimSplit(std::vector<PartRun> runs, uint64_t repeats)
    : runs_(std::move(runs)), repeats_(repeats) {
  starts_.reserve(runs_.size());
  const size_t repeated = repeats_ == 0 ? 0 : 2;
  Start at;
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (i == repeated && repeated != 0) {
      block_ = at;
      at = {block_.part * repeats_, block_.index * static_cast<int64_t>(repeats_)};
      rest_ = at;
    }
    starts_.push_back(at);
    at.part += runs_[i].count;
    at.index += static_cast<int64_t>(runs_[i].count) * runs_[i].size;
  }
  if (repeated != 0 && runs_.size() == repeated) {
    block_ = at;
    at = {block_.part * repeats_, block_.index * static_cast<int64_t>(repeats_)};
    rest_ = at;
  }
  part_count_ = at.part;
  extent_ = at.index;
}

DimSplit DimSplit::of_sizes(std::span<const int64_t> sizes) {
  std::vector<PartRun> runs;
  for (const int64_t size : sizes) append_run(&runs, {1, size});
  const uint64_t repeats = leading_pairs(runs);
  if (repeats != 0)
    runs.erase(runs.begin() + 2, runs.begin() + static_cast<std::ptrdiff_t>(2 * repeats));
  return {std::move(runs), repeats};
}

DimSplit DimSplit::of_chunks(int64_t extent, int64_t parts) {
  const ChunkParts cut = chunk_parts(extent, parts);
  std::vector<PartRun> runs;
  if (cut.full > 0) append_run(&runs, {static_cast<uint64_t>(cut.full), cut.step});
  if (cut.remainder > 0) append_run(&runs, {1, cut.remainder});
  return {std::move(runs), 0};
}

Result<DimSplit> DimSplit::from_runs(std::vector<PartRun> runs, uint64_t repeats) {
  int64_t block = 0;
  int64_t extent = 0;
  bool fits = repeats != 1 && (repeats == 0 || runs.size() >= 2);
  for (size_t i = 0; i < runs.size() && fits; ++i) {
    fits = runs[i].count > 0 && runs[i].size > 0;
    // Neighbours of one size would be one run; so would the end of a pair and its begin.
    if (i > 0) fits = fits && runs[i].size != runs[i - 1].size;
    fits =
        fits && add_product(runs[i].count, runs[i].size, i < 2 && repeats > 0 ? &block : &extent);
  }
  if (fits && repeats > 0) {
    fits = add_product(repeats, block, &extent);
    // A further pair would be counted.
    if (runs.size() >= 4) fits = fits && !(runs[2] == runs[0] && runs[3] == runs[1]);
  }
  if (fits && repeats == 0) fits = leading_pairs(runs) == 0;
  if (!fits) {
    return data_loss(
        fmt::format("{} runs of parts of which the first two come {} times are no split",
                    runs.size(), repeats));
  }
  return DimSplit(std::move(runs), repeats);
}

IndexRange DimSplit::operator[](uint64_t part) const {
  Start base;
  size_t first = 0;
  size_t last = runs_.size();
  if (repeats_ != 0) {
    if (part < rest_.part) {
      const uint64_t block = part / block_.part;
      base = {block * block_.part, static_cast<int64_t>(block) * block_.index};
      last = 2;
    } else {
      first = 2;
    }
  }
  const auto run =
      std::upper_bound(starts_.begin() + static_cast<std::ptrdiff_t>(first),
                       starts_.begin() + static_cast<std::ptrdiff_t>(last), part - base.part,
                       [](uint64_t wanted, const Start& start) { return wanted < start.part; });
  const auto number = static_cast<size_t>(run - starts_.begin()) - 1;
  const auto in_run = static_cast<int64_t>(part - base.part - starts_[number].part);
  const int64_t size = runs_[number].size;
  return {base.index + starts_[number].index + in_run * size, size};
}

uint64_t DimSplit::part_at(int64_t index) const {
  Start base;
  size_t first = 0;
  size_t last = runs_.size();
  if (repeats_ != 0) {
    if (index < rest_.index) {
      const int64_t block = index / block_.index;
      base = {static_cast<uint64_t>(block) * block_.part, block * block_.index};
      last = 2;
    } else {
      first = 2;
    }
  }
  const auto run =
      std::upper_bound(starts_.begin() + static_cast<std::ptrdiff_t>(first),
                       starts_.begin() + static_cast<std::ptrdiff_t>(last), index - base.index,
                       [](int64_t wanted, const Start& start) { return wanted < start.index; });
  const auto number = static_cast<size_t>(run - starts_.begin()) - 1;
  const int64_t in_run = index - base.index - starts_[number].index;
  return base.part + starts_[number].part + static_cast<uint64_t>(in_run / runs_[number].size);
}

}  // namespace shardwright::plan
