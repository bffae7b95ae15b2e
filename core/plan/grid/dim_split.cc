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
  Start at;
  for (size_t i = 0; i < runs_.size(); ++i) {
    starts_.push_back(at);
    at.part += runs_[i].count;
    at.index += static_cast<int64_t>(runs_[i].count) * runs_[i].size;
    if (repeats_ == 0 || i != 1) continue;
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

DimSplit::Section DimSplit::block(uint64_t number) const {
  return {{number * block_.part, static_cast<int64_t>(number) * block_.index}, 0, 2};
}

DimSplit::Section DimSplit::behind_blocks() const {
  return {{}, repeats_ == 0 ? size_t{0} : size_t{2}, runs_.size()};
}

template <typename Value>
size_t DimSplit::run_of(const Section& section, Value wanted, Value Start::* what) const {
  const auto starts = std::span(starts_).subspan(section.first, section.end - section.first);
  const auto after = std::ranges::upper_bound(starts, wanted - section.base.*what, {}, what);
  return section.first + static_cast<size_t>(after - starts.begin()) - 1;
}

DimSplit::Place DimSplit::place_of(uint64_t part) const {
  const Section section = part < rest_.part ? block(part / block_.part) : behind_blocks();
  Place place;
  place.run = run_of(section, part, &Start::part);
  place.in_run = part - section.base.part - starts_[place.run].part;
  place.index = section.base.index + starts_[place.run].index +
                static_cast<int64_t>(place.in_run) * runs_[place.run].size;
  return place;
}

IndexRange DimSplit::operator[](uint64_t part) const {
  const Place place = place_of(part);
  return {place.index, runs_[place.run].size};
}

void DimSplit::read_cuts(uint64_t first, uint64_t last, std::vector<int64_t>* cuts) const {
  cuts->resize(last - first + 1);
  int64_t* cut = cuts->data();
  for (uint64_t part = first; part < last;) {
    // As far as the run of the part goes.
    const Place place = place_of(part);
    const uint64_t count = std::min(last - part, runs_[place.run].count - place.in_run);
    const int64_t size = runs_[place.run].size;
    int64_t begin = place.index;
    for (uint64_t i = 0; i < count; ++i, begin += size) *cut++ = begin;
    *cut = begin;
    part += count;
  }
}

uint64_t DimSplit::part_at(int64_t index) const {
  const Section section =
      index < rest_.index ? block(static_cast<uint64_t>(index / block_.index)) : behind_blocks();
  const size_t run = run_of(section, index, &Start::index);
  const int64_t in_run = index - section.base.index - starts_[run].index;
  return section.base.part + starts_[run].part + static_cast<uint64_t>(in_run / runs_[run].size);
}

}  // namespace shardwright::plan
