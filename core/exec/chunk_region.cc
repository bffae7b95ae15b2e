// SPDX-License-Identifier: Apache-2.0
//
// A part of a chunk's bytes holds a range of the wanted elements in row-major order.
#include "core/exec/chunk_region_internal.h"

#include <algorithm>

#include <fmt/format.h>

namespace shardwright::exec::internal {
namespace {

bool whole_bytes(int64_t elements, int64_t bits) {
  return elements % 8 * bits % 8 == 0;
}
int64_t in_bytes(int64_t elements, int64_t bits) {
  return elements / 8 * bits + elements % 8 * bits / 8;
}

Status split_bytes(DType dtype, const Box& box) {
  return unimplemented(fmt::format(
      "box {} of a {} tensor does not begin and end on whole bytes in the last dimension",
      box_text(box), dtype_name(dtype)));
}

// Offset of `part` in `whole` and its sizes, with the last dimension in bytes for sub-byte dtypes.
struct Geometry {
  Dims offsets;
  Dims sizes;
  Dims whole_sizes;
};

Result<Geometry> relative_geometry(DType dtype, const Box& whole, const Box& part) {
  Geometry geometry{part.offsets, part.sizes, whole.sizes};
  for (size_t d = 0; d < part.sizes.size(); ++d) geometry.offsets[d] -= whole.offsets[d];
  if (!dtype_is_subbyte(dtype)) return geometry;
  if (part.sizes.empty()) return split_bytes(dtype, part);
  const size_t last = part.sizes.size() - 1;
  const int64_t bits = dtype_bits(dtype);
  for (Dims* dims : {&geometry.offsets, &geometry.sizes, &geometry.whole_sizes}) {
    if (!whole_bytes((*dims)[last], bits)) return split_bytes(dtype, part);
    (*dims)[last] = in_bytes((*dims)[last], bits);
  }
  return geometry;
}

uint64_t element_width(DType dtype) {
  return dtype_is_subbyte(dtype) ? 1 : static_cast<uint64_t>(dtype_bits(dtype)) / 8;
}

// True when the elements of a box of these sizes are one run: every dimension behind the first one
// that is longer than 1 is taken whole.
bool is_one_run(const Dims& sizes, const Dims& whole_sizes) {
  size_t d = 0;
  while (d < sizes.size() && sizes[d] == 1) ++d;
  for (++d; d < sizes.size(); ++d) {
    if (sizes[d] != whole_sizes[d]) return false;
  }
  return true;
}

// Index, in row-major order, of the first wanted element that lies at or behind `distance` elements
// from the origin.
uint64_t first_index_from(const ChunkRegion& region, uint64_t distance) {
  uint64_t inner = region.size_bytes / region.element_bytes;
  uint64_t index = 0;
  for (size_t d = 0; d < region.shape.size(); ++d) {
    const auto extent = static_cast<uint64_t>(region.shape[d]);
    const auto stride = static_cast<uint64_t>(region.strides[d]);
    inner /= extent;
    const uint64_t digit = distance / stride;
    if (digit >= extent) return index + extent * inner;
    index += digit * inner;
    distance -= digit * stride;
  }
  return distance > 0 ? index + 1 : index;
}

// Elements of the region that lie in the bytes, as a range of indices.
ElementRange elements_in(const ChunkRegion& region, const ChunkBytes& from) {
  return {packed_position(region, from.position) / region.element_bytes,
          packed_position(region, from.position + from.bytes.size()) / region.element_bytes};
}

// The region among bytes that are there; its first element may lie outside them.
StridedWindow source_window(const ChunkRegion& region, const ChunkBytes& from) {
  // The source is only read.
  const auto address =
      reinterpret_cast<uintptr_t>(from.bytes.data()) + region.origin - from.position;
  return {reinterpret_cast<std::byte*>(address), region.element_bytes, region.shape,
          region.strides};
}

Dims packed_strides(const Dims& shape) {
  Dims strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

}  // namespace

uint64_t ChunkRegion::end() const {
  uint64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    last += static_cast<uint64_t>(shape[d] - 1) * static_cast<uint64_t>(strides[d]);
  }
  return origin + (last + 1) * element_bytes;
}

Result<ChunkRegion> chunk_region(DType dtype, const Box& chunk, const Box& wanted) {
  SHW_ASSIGN_OR_RETURN(Geometry geometry, relative_geometry(dtype, chunk, wanted));
  ChunkRegion region;
  region.element_bytes = element_width(dtype);
  region.strides = packed_strides(geometry.whole_sizes);
  region.contiguous = is_one_run(geometry.sizes, geometry.whole_sizes);
  uint64_t first = 0;
  uint64_t count = 1;
  for (size_t d = 0; d < geometry.sizes.size(); ++d) {
    first += static_cast<uint64_t>(geometry.offsets[d]) * static_cast<uint64_t>(region.strides[d]);
    count *= static_cast<uint64_t>(geometry.sizes[d]);
  }
  region.origin = first * region.element_bytes;
  region.size_bytes = count * region.element_bytes;
  region.shape = std::move(geometry.sizes);
  return region;
}

uint64_t packed_position(const ChunkRegion& region, uint64_t chunk_position) {
  if (chunk_position <= region.origin) return 0;
  const uint64_t distance = chunk_position - region.origin;
  if (region.contiguous) return std::min(distance, region.size_bytes);
  return first_index_from(region, distance / region.element_bytes) * region.element_bytes;
}

uint64_t next_wanted(const ChunkRegion& region, uint64_t chunk_position) {
  const uint64_t packed = packed_position(region, chunk_position);
  if (packed >= region.size_bytes) return UINT64_MAX;
  if (region.contiguous) return region.origin + packed;
  uint64_t index = packed / region.element_bytes;
  uint64_t position = 0;
  for (size_t d = region.shape.size(); d-- > 0;) {
    const auto extent = static_cast<uint64_t>(region.shape[d]);
    position += index % extent * static_cast<uint64_t>(region.strides[d]);
    index /= extent;
  }
  return region.origin + position * region.element_bytes;
}

Result<StridedWindow> part_of_window(const StridedWindow& window, DType dtype, const Box& whole,
                                     const Box& part) {
  if (whole == part) return window;
  SHW_ASSIGN_OR_RETURN(Geometry geometry, relative_geometry(dtype, whole, part));
  StridedWindow inside = window;
  int64_t first = 0;
  for (size_t d = 0; d < geometry.sizes.size(); ++d)
    first += geometry.offsets[d] * window.strides[d];
  inside.data = window.data + first * static_cast<int64_t>(window.element_bytes);
  inside.shape = std::move(geometry.sizes);
  return inside;
}

Status copy_region(const ChunkRegion& region, const ChunkBytes& from,
                   const device::DeviceWindow& to) {
  const ElementRange range = elements_in(region, from);
  if (range.begin >= range.end) return {};
  if (region.contiguous) {
    const uint64_t begin = range.begin * region.element_bytes;
    const uint64_t size = (range.end - range.begin) * region.element_bytes;
    return to.device->scatter(from.bytes.subspan(region.origin + begin - from.position, size), to,
                              begin);
  }
  return to.device->copy(source_window(region, from), to, range);
}

Status cast_region(const ChunkRegion& region, const ChunkBytes& from, DType stored,
                   const device::DeviceWindow& to, DType wanted) {
  const ElementRange range = elements_in(region, from);
  if (range.begin >= range.end) return {};
  return to.device->cast(source_window(region, from), stored, to, wanted, range);
}

}  // namespace shardwright::exec::internal
