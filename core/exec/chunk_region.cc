// SPDX-License-Identifier: Apache-2.0
//
// A part of a chunk's bytes holds a range of the wanted elements in row-major order. Such a range
// is cut into boxes (rest of a first row, whole rows, begin of a last row, and so on inwards), each
// of which is one strided copy.
#include "core/exec/chunk_region_internal.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "core/tensor/cast.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kCastStepElements =
    16 * 1024;  // elements converted at a time; small enough for a core's cache

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

// A window whose first element may lie outside the memory that is there; only parts inside it are
// ever touched.
struct Place {
  std::byte* memory = nullptr;
  int64_t offset = 0;  // bytes from memory to the window's first element
  std::span<const int64_t> strides;
};

struct IndexRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Copies elements [begin, end) of the row-major order of two windows of one shape.
class RangeCopy {
 public:
  explicit RangeCopy(uint64_t element_bytes) : element_bytes_(element_bytes) {}

  void run(std::span<const int64_t> shape, const Place& from, const Place& to,
           IndexRange range) const {
    if (range.begin >= range.end) return;
    uint64_t inner = 1;
    for (size_t d = 1; d < shape.size(); ++d) inner *= static_cast<uint64_t>(shape[d]);
    if (shape.empty() ||
        (range.begin == 0 && range.end == inner * static_cast<uint64_t>(shape[0]))) {
      copy_box(shape, from, to);
      return;
    }
    uint64_t row = range.begin / inner;
    const uint64_t last_row = range.end / inner;
    const uint64_t head = range.begin % inner;
    if (row == last_row) {
      run_row(shape, from, to, row, {head, range.end % inner});
      return;
    }
    if (head != 0) run_row(shape, from, to, row++, {head, inner});
    if (row < last_row) {
      Dims rows(shape);
      rows[0] = static_cast<int64_t>(last_row - row);
      copy_box(rows, moved(from, row), moved(to, row));
    }
    run_row(shape, from, to, last_row, {0, range.end % inner});
  }

 private:
  Place moved(Place place, uint64_t row) const {
    place.offset +=
        static_cast<int64_t>(row) * place.strides[0] * static_cast<int64_t>(element_bytes_);
    return place;
  }

  void run_row(std::span<const int64_t> shape, const Place& from, const Place& to, uint64_t row,
               IndexRange range) const {
    if (range.begin >= range.end) return;
    Place inner_from = moved(from, row);
    Place inner_to = moved(to, row);
    inner_from.strides = from.strides.subspan(1);
    inner_to.strides = to.strides.subspan(1);
    run(shape.subspan(1), inner_from, inner_to, range);
  }

  StridedWindow window(std::span<const int64_t> shape, const Place& place) const {
    return {place.memory + place.offset, element_bytes_, Dims(shape), Dims(place.strides)};
  }

  void copy_box(std::span<const int64_t> shape, const Place& from, const Place& to) const {
    copy_window(window(shape, from), window(shape, to));
  }

  uint64_t element_bytes_;
};

// Elements of the region that lie in the bytes, as a range of indices.
IndexRange indices_in(const ChunkRegion& region, const ChunkBytes& from) {
  return {packed_position(region, from.position) / region.element_bytes,
          packed_position(region, from.position + from.bytes.size()) / region.element_bytes};
}

Place source_place(const ChunkRegion& region, const ChunkBytes& from) {
  // The source is only read.
  return {const_cast<std::byte*>(from.bytes.data()),
          static_cast<int64_t>(region.origin) - static_cast<int64_t>(from.position),
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

void copy_region(const ChunkRegion& region, const ChunkBytes& from, const StridedWindow& to) {
  const IndexRange range = indices_in(region, from);
  if (range.begin >= range.end) return;
  if (region.contiguous) {
    const uint64_t begin = range.begin * region.element_bytes;
    const uint64_t size = (range.end - range.begin) * region.element_bytes;
    scatter(from.bytes.subspan(region.origin + begin - from.position, size), to, begin);
    return;
  }
  RangeCopy(region.element_bytes)
      .run(region.shape, source_place(region, from), {to.data, 0, to.strides}, range);
}

Status cast_region(const ChunkRegion& region, const ChunkBytes& from, DType stored,
                   const StridedWindow& to, DType wanted) {
  const IndexRange range = indices_in(region, from);
  const Dims packed = packed_strides(region.shape);
  std::vector<std::byte> source(kCastStepElements * region.element_bytes);
  std::vector<std::byte> target(kCastStepElements * to.element_bytes);
  const RangeCopy copy(region.element_bytes);
  for (uint64_t begin = range.begin; begin < range.end; begin += kCastStepElements) {
    const uint64_t count = std::min(kCastStepElements, range.end - begin);
    const Place pack{source.data(), -static_cast<int64_t>(begin * region.element_bytes), packed};
    copy.run(region.shape, source_place(region, from), pack, {begin, begin + count});
    const auto target_bytes = std::span(target).first(count * to.element_bytes);
    SHW_RETURN_IF_ERROR(cast_elements(stored, std::span(source).first(count * region.element_bytes),
                                      wanted, target_bytes));
    scatter(target_bytes, to, begin * to.element_bytes);
  }
  return {};
}

}  // namespace shardwright::exec::internal
