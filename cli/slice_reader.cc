// SPDX-License-Identifier: Apache-2.0
//
// Each dimension becomes a list of runs of neighbouring indices; every combination of runs is one
// box, and all boxes are read by one call, straight to their place in the compact array. Sub-byte
// elements cannot be addressed one by one, so for them whole rows are read and elements are picked
// in memory.
#include "cli/slice_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/array_text.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

struct IndexRun {
  int64_t first = 0;  // index in the tensor
  int64_t count = 0;
  int64_t position = 0;  // index in the compact array
};

// Positions 0..count of a slice that are read, ascending.
std::vector<int64_t> chosen_positions(const DimensionSlice& slice, bool cut) {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < slice.count; ++i) {
    if (cut && i == kEdgeItems) i = slice.count - kEdgeItems;
    positions.push_back(i);
  }
  return positions;
}

std::vector<IndexRun> runs_of(const DimensionSlice& slice, bool cut) {
  std::vector<IndexRun> runs;
  int64_t position = 0;
  for (const int64_t i : chosen_positions(slice, cut)) {
    const int64_t index = slice.start + i * slice.step;
    if (!runs.empty() && runs.back().first + runs.back().count == index) {
      ++runs.back().count;
    } else {
      runs.push_back({index, 1, position});
    }
    ++position;
  }
  return runs;
}

// All combinations of one run per dimension, as boxes with targets inside the compact array.
struct BoxList {
  std::vector<uint64_t> tensors;
  std::vector<shw_tensor> targets;
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // of the compact array
};

void add_boxes(const std::vector<std::vector<IndexRun>>& runs, const TensorFacts& tensor,
               std::byte* memory, BoxList* list) {
  const size_t rank = runs.size();
  std::vector<size_t> choice(rank, 0);
  while (true) {
    int64_t element = 0;
    for (size_t d = 0; d < rank; ++d) {
      const IndexRun& run = runs[d][choice[d]];
      list->offsets.push_back(run.first);
      list->sizes.push_back(run.count);
      element += run.position * list->strides[d];
    }
    shw_tensor target = SHW_TENSOR_INIT;
    target.data = memory + static_cast<uint64_t>(element) * tensor.type.bits / 8;
    target.dtype = tensor.type.dtype;
    target.ndim = static_cast<int32_t>(rank);
    list->targets.push_back(target);
    list->tensors.push_back(tensor.index);
    size_t d = rank;
    while (d > 0 && ++choice[d - 1] == runs[d - 1].size()) choice[--d] = 0;
    if (d == 0) return;
  }
}

void read_boxes(const SliceSource& source, const TensorFacts& tensor, BoxList* list) {
  const size_t rank = list->strides.size();
  for (size_t i = 0; i < list->targets.size(); ++i) {
    list->targets[i].shape = list->sizes.data() + i * rank;
    list->targets[i].strides = list->strides.data();
  }
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  batch.count = list->targets.size();
  batch.tensors = list->tensors.data();
  batch.targets = list->targets.data();
  batch.box_offsets = rank == 0 ? nullptr : list->offsets.data();
  batch.box_sizes = rank == 0 ? nullptr : list->sizes.data();
  const Report report = made_by<shw_report, shw_report_release>(
      [&](shw_report** out, shw_error** error) {
        return shw_checkpoint_read_boxes(source.checkpoint.get(), &batch, out, error);
      },
      "read the slice", Place::of_checkpoint(source.path, tensor.listed));
}

std::vector<int64_t> row_major(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

uint64_t product(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent != 0 && count > UINT64_MAX / static_cast<uint64_t>(extent)) return UINT64_MAX;
    count *= static_cast<uint64_t>(extent);
  }
  return count;
}

void check_count(uint64_t count, const TensorFacts& tensor) {
  if (count <= kMaxShownElements) return;
  Failure failure;
  failure.status = SHW_RESOURCE_EXHAUSTED;
  failure.what = "cannot show the slice (RESOURCE_EXHAUSTED)";
  failure.where = tensor.listed;
  failure.cause =
      fmt::format("{} elements, the limit is {}", count_text(count), count_text(kMaxShownElements));
  failure.next = "give a smaller slice, such as '" + tensor.listed + "[0:4, ...]'";
  throw failure;
}

// Elements of whole dtypes: the compact array is read as it is.
std::vector<Element> read_compact(const SliceSource& source, const TensorFacts& tensor,
                                  const std::vector<std::vector<IndexRun>>& runs,
                                  const std::vector<int64_t>& stored) {
  const uint64_t count = product(stored);
  std::vector<std::byte> memory(count * tensor.type.bits / 8);
  BoxList list;
  list.strides = row_major(stored);
  add_boxes(runs, tensor, memory.data(), &list);
  read_boxes(source, tensor, &list);
  return decode_elements(tensor.type, memory, 0, count);
}

// Sub-byte dtypes: one read per row run in front of the last dimension, then the wanted elements of
// each row.
std::vector<Element> read_rows(const SliceSource& source, const TensorFacts& tensor,
                               const std::vector<std::vector<IndexRun>>& runs,
                               const std::vector<int64_t>& stored) {
  const size_t last = stored.size() - 1;
  const int64_t row = tensor.shape[last];
  uint64_t rows = 1;
  for (size_t d = 0; d < last; ++d) rows *= static_cast<uint64_t>(stored[d]);
  check_count(rows * static_cast<uint64_t>(row), tensor);
  std::vector<Element> elements;
  std::vector<std::byte> memory(static_cast<uint64_t>(row) * tensor.type.bits / 8);
  std::vector<std::vector<IndexRun>> single = runs;
  std::vector<int64_t> at(stored.size(), 0);
  for (uint64_t r = 0; r < rows; ++r) {
    for (size_t d = 0; d < last; ++d) {
      for (const IndexRun& run : runs[d]) {
        if (at[d] >= run.position && at[d] < run.position + run.count) {
          single[d] = {{run.first + at[d] - run.position, 1, 0}};
        }
      }
    }
    single[last] = {{0, row, 0}};
    BoxList list;
    list.strides.assign(stored.size(), row);
    list.strides[last] = 1;
    add_boxes(single, tensor, memory.data(), &list);
    read_boxes(source, tensor, &list);
    for (const IndexRun& run : runs[last]) {
      const std::vector<Element> part = decode_elements(
          tensor.type, memory, static_cast<uint64_t>(run.first), static_cast<uint64_t>(run.count));
      elements.insert(elements.end(), part.begin(), part.end());
    }
    for (size_t d = last; d > 0;) {
      --d;
      if (++at[d] != stored[d]) break;
      at[d] = 0;
    }
  }
  return elements;
}

}  // namespace

SliceValues read_slice(const SliceSource& source, const TensorFacts& tensor,
                       const std::vector<DimensionSlice>& slices, bool edges_only) {
  std::vector<int64_t> counts;
  counts.reserve(slices.size());
  for (const DimensionSlice& slice : slices) counts.push_back(slice.count);
  SliceValues values;
  values.count = product(counts);
  const bool summarised = edges_only && values.count > static_cast<uint64_t>(kSummaryThreshold);
  std::vector<int64_t> stored;
  std::vector<bool> cuts;
  for (const DimensionSlice& slice : slices) {
    cuts.push_back(summarised && slice.count > 2 * kEdgeItems);
    stored.push_back(cuts.back() ? 2 * kEdgeItems : slice.count);
    if (slice.dropped) continue;
    values.shape.push_back(slice.count);
    values.stored.push_back(stored.back());
    values.cut.push_back(cuts.back());
  }
  const uint64_t count = product(stored);
  check_count(count, tensor);
  if (count == 0) return values;
  std::vector<std::vector<IndexRun>> runs;
  runs.reserve(slices.size());
  for (size_t d = 0; d < slices.size(); ++d) runs.push_back(runs_of(slices[d], cuts[d]));
  values.elements = tensor.type.bits % 8 == 0 ? read_compact(source, tensor, runs, stored)
                                              : read_rows(source, tensor, runs, stored);
  return values;
}

}  // namespace shardwright::cli
