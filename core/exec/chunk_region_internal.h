// SPDX-License-Identifier: Apache-2.0
//
// ChunkRegion: where the elements of a wanted box lie among the packed row-major bytes of a chunk,
// and the copies from any contiguous part of those bytes into the wanted window. Sub-byte dtypes
// are counted in bytes of the last dimension.
//
// Two numberings of bytes are used and never mixed: a *chunk position* counts the chunk's bytes, a
// *packed position* counts the bytes of the wanted elements alone, in row-major order. Both grow
// together. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/result.h"
#include "core/device/device.h"
#include "core/layout/box.h"
#include "core/tensor/dtype.h"
#include "core/tensor/strided_window.h"

namespace shardwright::exec::internal {

struct ChunkRegion {
  uint64_t origin = 0;         // chunk position of the first wanted element
  uint64_t element_bytes = 1;  // 1 for sub-byte dtypes
  uint64_t size_bytes = 0;     // of the wanted elements
  bool contiguous = false;     // the wanted elements are one run of the chunk's bytes
  Dims shape;                  // of the wanted box
  Dims strides;                // of the chunk, in elements

  // Chunk position behind the last wanted element.
  uint64_t end() const;
};

// Region of `wanted`, which is not empty and lies inside `chunk`. UNIMPLEMENTED for a sub-byte box
// that does not begin and end on whole bytes.
Result<ChunkRegion> chunk_region(DType dtype, const Box& chunk, const Box& wanted);

// Packed position of the first wanted byte at or behind a chunk position; size_bytes when there is
// none. The chunk position must not fall inside an element.
uint64_t packed_position(const ChunkRegion& region, uint64_t chunk_position);
// Chunk position of the first wanted byte at or behind a chunk position; UINT64_MAX when there is
// none.
uint64_t next_wanted(const ChunkRegion& region, uint64_t chunk_position);

// The window of box `part` (global coordinates) inside a window that is shaped like box `whole`.
Result<StridedWindow> part_of_window(const StridedWindow& window, DType dtype, const Box& whole,
                                     const Box& part);

// Bytes of a chunk that are in memory, and the chunk position of the first of them.
struct ChunkBytes {
  std::span<const std::byte> bytes;
  uint64_t position = 0;
};

// Copies the wanted elements that lie in `from` to their place in `to`, a window of the wanted box
// with the same element size. Fails as the device of `to` does.
Status copy_region(const ChunkRegion& region, const ChunkBytes& from,
                   const device::DeviceWindow& to);

// The same into a window of another dtype.
Status cast_region(const ChunkRegion& region, const ChunkBytes& from, DType stored,
                   const device::DeviceWindow& to, DType wanted);

}  // namespace shardwright::exec::internal
