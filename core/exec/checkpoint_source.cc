// SPDX-License-Identifier: Apache-2.0
#include "core/exec/checkpoint_source_internal.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

#include "core/exec/read_back_internal.h"

namespace shardwright::exec::internal {
namespace {

// The boxes that elements [begin, end) of a row-major tensor are, in their order: parts of rows at
// both ends, whole rows between them, dimension by dimension.
class LinearBoxes {
 public:
  explicit LinearBoxes(std::span<const int64_t> shape)
      : shape_(shape), strides_(shape.size() + 1, 1) {
    for (size_t d = shape.size(); d-- > 0;) strides_[d] = strides_[d + 1] * shape[d];
  }

  std::vector<Box> of(int64_t begin, int64_t end) {
    boxes_.clear();
    Box box{Dims(shape_.size(), 0), Dims(shape_.size(), 1)};
    add(0, begin, end, &box);
    return std::move(boxes_);
  }

 private:
  // Elements of the part of the tensor that the box fixes in dimensions below d.
  void add(size_t d, int64_t begin, int64_t end, Box* box) {
    if (begin >= end) return;
    if (begin == 0 && end == strides_[d]) return add_rest(d, box);
    const int64_t row = strides_[d + 1];
    const int64_t first = begin / row;
    const int64_t last = (end - 1) / row;
    if (first == last) return add_row(d, first, begin - first * row, end - first * row, box);
    const int64_t whole_begin = begin % row == 0 ? first : first + 1;
    const int64_t whole_end = end % row == 0 ? last + 1 : last;
    if (whole_begin != first) add_row(d, first, begin - first * row, row, box);
    if (whole_begin < whole_end) {
      box->offsets[d] = whole_begin;
      box->sizes[d] = whole_end - whole_begin;
      add_rest(d + 1, box);
      box->sizes[d] = 1;
    }
    if (whole_end <= last) add_row(d, last, 0, end - last * row, box);
  }
  void add_row(size_t d, int64_t index, int64_t begin, int64_t end, Box* box) {
    box->offsets[d] = index;
    box->sizes[d] = 1;
    add(d + 1, begin, end, box);
  }
  // All of the dimensions from d on.
  void add_rest(size_t d, Box* box) {
    Box whole = *box;
    for (; d < shape_.size(); ++d) {
      whole.offsets[d] = 0;
      whole.sizes[d] = shape_[d];
    }
    boxes_.push_back(std::move(whole));
  }

  std::span<const int64_t> shape_;
  std::vector<int64_t> strides_;  // elements of one index of dimension d - 1
  std::vector<Box> boxes_;
};

// Least elements whose bits are whole bytes.
int64_t whole_elements(DType dtype) {
  return 8 / std::gcd(int64_t{8}, static_cast<int64_t>(dtype_bits(dtype)));
}

}  // namespace

// The reads of one call. Runs that begin or end inside of an element come through memory of their
// own.
struct CheckpointSource::Pending {
  struct Around {
    std::vector<std::byte> bytes;
    uint64_t begin = 0;  // of the run in bytes
    std::span<std::byte> to;
  };
  std::vector<BoxRead> reads;
  std::deque<Around> around;
};

Status CheckpointSource::add_tensor_run(const WantedRun& run, Pending* pending) const {
  const plan::WriteItem& item = list_.items[run.item];
  const TensorRef entry = state_.tensors()[item.entry];
  const DType dtype = entry.local.dtype;
  const std::span<const int64_t> shape = entry.pieces.sizes(item.piece);
  const std::span<const int64_t> offsets = entry.pieces.offsets(item.piece);
  const int64_t unit = whole_elements(dtype);
  const auto unit_bytes = static_cast<uint64_t>(unit * dtype_bits(dtype) / 8);
  uint64_t begin = run.begin / unit_bytes;
  uint64_t end = (run.begin + run.to.size() + unit_bytes - 1) / unit_bytes;
  // Rows of elements below a byte that end inside of one are read with the whole tensor.
  const bool rows_are_whole = shape.empty() || shape.back() % unit == 0;
  if (!rows_are_whole) {
    begin = 0;
    end = item.size_bytes / unit_bytes;
  }
  std::span<std::byte> to = run.to;
  if (begin * unit_bytes != run.begin || end * unit_bytes != run.begin + run.to.size()) {
    Pending::Around& around = pending->around.emplace_back();
    around.bytes.resize(static_cast<size_t>((end - begin) * unit_bytes));
    around.begin = run.begin - begin * unit_bytes;
    around.to = run.to;
    to = around.bytes;
  }
  for (Box& box : LinearBoxes(shape).of(static_cast<int64_t>(begin) * unit,
                                        static_cast<int64_t>(end) * unit)) {
    const auto bytes = static_cast<size_t>(box_element_count(box) / unit) * unit_bytes;
    TensorView view;
    view.data = to.data();
    view.dtype = dtype;
    view.shape = box.sizes;
    for (size_t d = 0; d < box.offsets.size(); ++d) box.offsets[d] += offsets[d];
    pending->reads.push_back({entries_.tensors[item.entry], std::move(box), std::move(view)});
    to = to.subspan(bytes);
  }
  return {};
}

Status CheckpointSource::read(std::span<const WantedRun> runs) {
  Pending pending;
  for (const WantedRun& run : runs) {
    const plan::WriteItem& item = list_.items[run.item];
    if (item.piece != plan::kObjectPiece) {
      SHW_RETURN_IF_ERROR(add_tensor_run(run, &pending));
      continue;
    }
    SHW_RETURN_IF_ERROR(checkpoint_.read_object_part(entries_.objects[item.entry], run.begin,
                                                     run.to, ReadRules(), call_));
  }
  SHW_RETURN_IF_ERROR(checkpoint_.read_boxes(pending.reads, rules_, call_).status());
  for (const Pending::Around& around : pending.around)
    std::memcpy(around.to.data(), around.bytes.data() + around.begin, around.to.size());
  if (taken_ != nullptr) taken_->add(runs);
  return {};
}

}  // namespace shardwright::exec::internal
