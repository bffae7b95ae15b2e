// SPDX-License-Identifier: Apache-2.0
#include "core/exec/checkpoint_source_internal.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

#include "core/exec/read_back_internal.h"
#include "core/layout/flat_range.h"

namespace shardwright::exec::internal {
namespace {

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
  std::vector<Piece> pieces;
  append_flat_range({Dims(offsets), Dims(shape)},
                    {static_cast<int64_t>(begin) * unit, static_cast<int64_t>(end - begin) * unit},
                    &pieces);
  for (Piece& piece : pieces) {
    const auto bytes = static_cast<size_t>(box_element_count(piece.box) / unit) * unit_bytes;
    TensorView view;
    view.data = to.data();
    view.dtype = dtype;
    view.shape = piece.box.sizes;
    pending->reads.push_back({entries_.tensors[item.entry], std::move(piece.box), std::move(view)});
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
