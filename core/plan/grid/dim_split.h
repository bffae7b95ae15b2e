// SPDX-License-Identifier: Apache-2.0
//
// DimSplit: one dimension of a tensor cut into parts that follow each other, none of them empty. It
// is written as runs of equal parts: a pair of runs that repeats, then further runs. The rule of
// torch.chunk is one or two runs however many parts it makes, a cut of its parts by the same rule a
// repeated pair, and listed boundaries are runs of one part each. The form is a function of the
// sizes alone, so equal splits are equal in every byte. Immutable value; thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/layout/index_range.h"

namespace shardwright::plan {

// Parts of one size that follow each other.
struct PartRun {
  uint64_t count = 0;
  int64_t size = 0;
  friend bool operator==(const PartRun&, const PartRun&) = default;
};
static_assert(sizeof(PartRun) == 16);

class DimSplit {
 public:
  // No parts, extent 0.
  DimSplit() = default;
  // Each size is above 0; their sum fits.
  static DimSplit of_sizes(std::span<const int64_t> sizes);
  // The parts of torch.chunk that are not empty. parts is at least 1.
  static DimSplit of_chunks(int64_t extent, int64_t parts);
  // What runs() and repeats() said. DATA_LOSS for a run without parts or without indices, for more
  // than 2^63 - 1 indices, and for any form but the one that of_sizes gives.
  static Result<DimSplit> from_runs(std::vector<PartRun> runs, uint64_t repeats);

  uint64_t part_count() const { return part_count_; }
  int64_t extent() const { return extent_; }
  // part < part_count().
  IndexRange operator[](uint64_t part) const;
  // The part that has this index, which lies inside the extent.
  uint64_t part_at(int64_t index) const;
  // Replaces cuts by the begins of parts first to last - 1, at least one, and the end of the last.
  void read_cuts(uint64_t first, uint64_t last, std::vector<int64_t>* cuts) const;

  // The first two runs stand for themselves that many times when that is two or more, else 0.
  uint64_t repeats() const { return repeats_; }
  std::span<const PartRun> runs() const { return runs_; }

  friend bool operator==(const DimSplit& a, const DimSplit& b) {
    return a.repeats_ == b.repeats_ && a.runs_ == b.runs_;
  }

 private:
  DimSplit(std::vector<PartRun> runs, uint64_t repeats);
  struct Start {
    uint64_t part = 0;
    int64_t index = 0;
  };
  // Runs that are looked at together, and where the first of them stands less its own start.
  struct Section {
    Start base;
    size_t first = 0;
    size_t end = 0;
  };
  // Where a part stands: its run, how many parts of the run are before it, its first index.
  struct Place {
    size_t run = 0;
    uint64_t in_run = 0;
    int64_t index = 0;
  };
  Section block(uint64_t number) const;  // a repetition of the first two runs
  Section behind_blocks() const;         // all runs where none are repeated
  // The last run of the section that starts at the wanted part or index, or before it.
  template <typename Value>
  size_t run_of(const Section& section, Value wanted, Value Start::* what) const;
  Place place_of(uint64_t part) const;

  std::vector<PartRun> runs_;
  uint64_t repeats_ = 0;
  std::vector<Start> starts_;  // of each run where it stands first
  Start block_;                // parts and indices of the first two runs together
  Start rest_;                 // where the runs behind the repeated ones begin
  uint64_t part_count_ = 0;
  int64_t extent_ = 0;
};

}  // namespace shardwright::plan
