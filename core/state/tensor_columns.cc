// SPDX-License-Identifier: Apache-2.0
#include "core/state/tensor_columns.h"

#include <algorithm>
#include <bit>

namespace shardwright {
namespace {

bool is_plain(const TensorRef& tensor) {
  if (tensor.pieces.size() != 1 || tensor.pieces.local_offset(0) != 0) return false;
  const auto origin = tensor.pieces.offsets(0);
  return covers_whole(tensor) && std::ranges::equal(tensor.global_shape, tensor.local.shape) &&
         std::ranges::all_of(origin, [](int64_t offset) { return offset == 0; });
}

bool is_placed(const TensorSpan& local) {
  return local.device_type != static_cast<int32_t>(DeviceType::kCpu) || local.device_id != 0 ||
         local.stream != 0;
}

}  // namespace

TensorRef TensorColumns::operator[](size_t index) const {
  const Record& record = records_[index];
  const int64_t* at = numbers_.data() + record.numbers;
  const auto take = [&at](size_t count) {
    const std::span<const int64_t> values(at, count);
    at += count;
    return values;
  };
  TensorRef tensor;
  tensor.name = names_[index];
  tensor.path = index < paths_.size() ? paths_[index] : std::string_view("");
  tensor.kind = record.kind;
  tensor.local.data = record.data;
  tensor.local.dtype = record.dtype;
  tensor.local.shape = take(record.local_rank);
  if (record.strided) tensor.local.strides = take(record.local_rank);
  if (record.placed) {
    const auto place = take(3);
    tensor.local.device_type = static_cast<int32_t>(place[0]);
    tensor.local.device_id = static_cast<int32_t>(place[1]);
    tensor.local.stream = static_cast<uint64_t>(place[2]);
  }
  tensor.local.read_only = record.read_only;
  tensor.replica = record.replica;
  if (index < layouts_.size() && layouts_[index] != nullptr) tensor.layout = &layouts_[index];
  if (record.cut) tensor.fragments = take(record.global_rank);
  if (record.plain) {
    tensor.global_shape = tensor.local.shape;
    tensor.pieces = PieceList::whole(tensor.global_shape);
    return tensor;
  }
  tensor.global_shape = take(record.global_rank);
  const size_t values = size_t{record.piece_count} * record.global_rank;
  tensor.pieces = {record.global_rank, record.piece_count, at, at + values, at + 2 * values};
  if (record.scattered) {
    const int64_t* const addresses = at + 2 * values + record.piece_count;
    tensor.memory = {record.global_rank, addresses, addresses + record.piece_count};
  }
  return tensor;
}

void TensorColumns::append(const TensorRef& tensor, std::string_view path) {
  const TensorSpan& local = tensor.local;
  Record record;
  record.data = local.data;
  record.numbers = numbers_.size();
  record.piece_count = static_cast<uint32_t>(tensor.pieces.size());
  record.dtype = local.dtype;
  record.kind = tensor.kind;
  record.local_rank = static_cast<uint8_t>(local.shape.size());
  record.global_rank = static_cast<uint8_t>(tensor.global_shape.size());
  record.strided = !local.strides.empty();
  record.placed = is_placed(local);
  record.plain = !tensor.memory.exists() && is_plain(tensor);
  record.read_only = local.read_only;
  record.scattered = tensor.memory.exists();
  record.replica = tensor.replica;
  record.cut = !tensor.fragments.empty();
  append_numbers(local.shape);
  append_numbers(local.strides);
  if (record.placed)
    append_numbers({{local.device_type, local.device_id, static_cast<int64_t>(local.stream)}});
  append_numbers(tensor.fragments);
  if (!record.plain) append_pieces(tensor);
  append_path(path);
  if (tensor.layout != nullptr && *tensor.layout != nullptr) append_layout(*tensor.layout);
  names_.append(tensor.name);
  records_.push_back(record);
  if (record.replica) ++replicas_;
}

void TensorColumns::append_pieces(const TensorRef& tensor) {
  append_numbers(tensor.global_shape);
  const size_t count = tensor.pieces.size();
  for (size_t p = 0; p < count; ++p) append_numbers(tensor.pieces.offsets(p));
  for (size_t p = 0; p < count; ++p) append_numbers(tensor.pieces.sizes(p));
  for (size_t p = 0; p < count; ++p) numbers_.push_back(tensor.pieces.local_offset(p));
  if (!tensor.memory.exists()) return;
  for (size_t p = 0; p < count; ++p)
    numbers_.push_back(std::bit_cast<int64_t>(tensor.memory.data(p)));
  for (size_t p = 0; p < count; ++p) append_numbers(tensor.memory.strides(p));
}

void TensorColumns::append_path(std::string_view path) {
  if (path.empty()) return;
  while (paths_.size() < records_.size()) paths_.append("");
  paths_.append(path);
}

void TensorColumns::append_layout(const Layout::Ptr& layout) {
  reserve_doubling(&layouts_, records_.size() + 1 - layouts_.size());
  layouts_.resize(records_.size());
  layouts_.push_back(layout);
}

void TensorColumns::reserve_more(size_t tensors, size_t name_bytes) {
  reserve_doubling(&records_, tensors);
  reserve_doubling(&numbers_, 2 * tensors);
  names_.reserve_more(tensors, name_bytes);
}

TensorColumns::Mark TensorColumns::mark() const {
  return {records_.size(), numbers_.size(), names_.size(),
          paths_.size(),   layouts_.size(), replicas_};
}

void TensorColumns::take_back(const Mark& mark) {
  records_.resize(mark.records);
  numbers_.resize(mark.numbers);
  names_.truncate(mark.names);
  paths_.truncate(mark.paths);
  layouts_.resize(mark.layouts);
  replicas_ = mark.replicas;
}

}  // namespace shardwright
