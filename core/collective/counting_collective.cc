// SPDX-License-Identifier: Apache-2.0
#include "core/collective/counting_collective.h"

#include <utility>

namespace shardwright::collective {

Status CountingCollective::counted(Status moved, uint64_t bytes) {
  if (moved.ok()) received_bytes_ += bytes;
  return moved;
}

Status CountingCollective::broadcast(const Call& call, std::span<std::byte> data, int32_t root) {
  return counted(inner_.broadcast(call, data, root), rank() == root ? 0 : data.size());
}

Status CountingCollective::all_gather(const Call& call, std::span<const std::byte> in,
                                      std::span<std::byte> out) {
  return counted(inner_.all_gather(call, in, out), out.size() - in.size());
}

Status CountingCollective::all_gather_v(const Call& call, std::span<const std::byte> in,
                                        std::span<std::byte> out, std::span<const uint64_t> sizes) {
  return counted(inner_.all_gather_v(call, in, out, sizes), out.size() - in.size());
}

Status CountingCollective::gather_v(const Call& call, std::span<const std::byte> in,
                                    std::span<std::byte> out, std::span<const uint64_t> sizes,
                                    int32_t root) {
  if (!has_gather_v()) return Collective::gather_v(call, in, out, sizes, root);
  return counted(inner_.gather_v(call, in, out, sizes, root),
                 rank() == root ? out.size() - in.size() : 0);
}

Status CountingCollective::scatter_v(const Call& call, std::span<const std::byte> in,
                                     std::span<const uint64_t> sizes, std::span<std::byte> out,
                                     int32_t root) {
  if (!has_scatter_v()) return Collective::scatter_v(call, in, sizes, out, root);
  return counted(inner_.scatter_v(call, in, sizes, out, root), rank() == root ? 0 : out.size());
}

Status CountingCollective::all_to_all_v(const Call& call, std::span<const std::byte> in,
                                        std::span<const uint64_t> in_sizes,
                                        std::span<std::byte> out,
                                        std::span<const uint64_t> out_sizes) {
  if (!has_all_to_all_v()) return Collective::all_to_all_v(call, in, in_sizes, out, out_sizes);
  Status moved = inner_.all_to_all_v(call, in, in_sizes, out, out_sizes);
  // Sizes of the wrong number have been refused by now.
  const uint64_t own = moved.ok() ? out_sizes[static_cast<size_t>(rank())] : 0;
  return counted(std::move(moved), out.size() - own);
}

Status CountingCollective::all_reduce_i64(const Call& call, std::span<int64_t> values,
                                          ReduceOperation operation) {
  return counted(inner_.all_reduce_i64(call, values, operation),
                 size() > 1 ? values.size_bytes() : 0);
}

}  // namespace shardwright::collective
