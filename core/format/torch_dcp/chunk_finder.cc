// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/torch_dcp/chunk_finder_internal.h"

namespace shardwright::format::torch_dcp::internal {
namespace {

const std::string& name_at(const DcpIndex& index, size_t entry) {
  return entry < index.tensors.size() ? index.tensors[entry].name
                                      : index.objects[entry - index.tensors.size()].name;
}

}  // namespace

Status ChunkFinder::index_names(const DcpIndex& index) {
  const size_t count = index.tensors.size() + index.objects.size();
  names_.reserve(count, [](size_t) { return uint64_t{0}; });
  for (size_t entry = 0; entry < count; ++entry) {
    const std::string& name = name_at(index, entry);
    const uint64_t hash = hash_text(name);
    if (names_.find(hash, [&](size_t other) { return name_at(index, other) == name; })) {
      return data_loss(fmt::format("the index has '{}' twice", escape_text(name)))
          .with_detail("tensor", name);
    }
    names_.insert(hash, entry);
  }
  next_.assign(index.tensors.size(), 0);
  return {};
}

uint32_t ChunkFinder::entry_of(const DcpIndex& index, std::string_view name) {
  if (last_ != kNone && name_at(index, last_) == name) return last_;
  const auto found =
      names_.find(hash_text(name), [&](size_t entry) { return name_at(index, entry) == name; });
  last_ = found.has_value() ? static_cast<uint32_t>(*found) : kNone;
  return last_;
}

ItemPlace* ChunkFinder::find(DcpIndex* index, std::string_view name, const Dims* offset,
                             int64_t hint) {
  const uint32_t entry = entry_of(*index, name);
  if (entry == kNone) return nullptr;
  if (entry >= index->tensors.size())
    return offset == nullptr || offset->empty()
               ? &index->objects[entry - index->tensors.size()].place
               : nullptr;
  const DcpIndex::Tensor& tensor = index->tensors[entry];
  if (offset != nullptr) return find_chunk(index, entry, *offset, hint);
  return tensor.chunk_count == 1 ? &index->places[tensor.chunk_begin] : nullptr;
}

ItemPlace* ChunkFinder::find_chunk(DcpIndex* index, uint32_t tensor, const Dims& offset,
                                   int64_t hint) {
  const DcpIndex::Tensor& record = index->tensors[tensor];
  const size_t dims = record.shape.size();
  Dims wanted = offset;
  if (wanted.size() != dims) return nullptr;
  // torch counts pairs of elements of float4.
  if (record.dtype == DType::kFloat4E2m1fn && dims > 0 &&
      !checked_multiply(wanted[dims - 1], int64_t{2}, &wanted[dims - 1]))
    return nullptr;
  const auto is_there = [&](uint64_t chunk) {
    return chunk < record.chunk_count && std::ranges::equal(index->offsets(record, chunk), wanted);
  };
  uint64_t chunk = static_cast<uint64_t>(hint);
  if (hint < 0 || !is_there(chunk)) chunk = next_[tensor];
  if (!is_there(chunk)) chunk = search(*index, tensor, wanted);
  if (!is_there(chunk)) return nullptr;
  next_[tensor] = chunk + 1;
  return &index->places[record.chunk_begin + chunk];
}

uint64_t ChunkFinder::search(const DcpIndex& index, uint32_t tensor, const Dims& offset) {
  const DcpIndex::Tensor& record = index.tensors[tensor];
  const auto before = [](std::span<const int64_t> a, std::span<const int64_t> b) {
    return std::ranges::lexicographical_compare(a, b);
  };
  const auto offset_of = [&](uint32_t chunk) { return index.offsets(record, chunk); };
  const auto [entry, added] = by_offset_.try_emplace(tensor);
  std::vector<uint32_t>& sorted = entry->second;
  if (added) {
    sorted.resize(record.chunk_count);
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::ranges::sort(sorted, before, offset_of);
  }
  const auto found = std::ranges::lower_bound(sorted, offset.span(), before, offset_of);
  return found == sorted.end() ? record.chunk_count : *found;
}

std::string* ChunkFinder::path_of(DcpIndex* index, std::string_view name) {
  const uint32_t entry = entry_of(*index, name);
  if (entry == kNone) return nullptr;
  return entry < index->tensors.size() ? &index->tensors[entry].path
                                       : &index->objects[entry - index->tensors.size()].path;
}

}  // namespace shardwright::format::torch_dcp::internal
