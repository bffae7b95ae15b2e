/* SPDX-License-Identifier: Apache-2.0
 *
 * Immutable bytes owned by the library: results such as plans, names and JSON texts. A buffer has
 * one or more parts that lie one behind the other; a list of texts is a buffer with one part each.
 */
#ifndef SHARDWRIGHT_BUFFER_H
#define SHARDWRIGHT_BUFFER_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Immutable bytes in parts.
 * Since: 0.1 unstable */
typedef struct shw_buffer shw_buffer;

/* Makes a buffer of one part by copying `size` bytes.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_buffer_create(const void* SHW_NULLABLE data, uint64_t size,
                                                  shw_buffer** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a buffer by copying a blob that `offsets` (part_count + 1 ascending values, the first 0)
 * cuts into parts.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_buffer_create_parts(const void* SHW_NULLABLE data,
                                                        const uint64_t* offsets,
                                                        uint64_t part_count, shw_buffer** out,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* First byte of the buffer, aligned to 64 bytes and followed by a NUL; borrowed until release.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const void* shw_buffer_data(const shw_buffer* buffer) SHW_NOEXCEPT;

/* Number of bytes of all parts together.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_buffer_size(const shw_buffer* buffer) SHW_NOEXCEPT;

/* Number of parts.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_buffer_part_count(const shw_buffer* buffer) SHW_NOEXCEPT;

/* Offsets of the parts, part_count + 1 ascending values; borrowed until release.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const uint64_t* shw_buffer_part_offsets(const shw_buffer* buffer) SHW_NOEXCEPT;

/* First byte of part `index`; NULL when there is no such part. Borrowed until release.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const void* shw_buffer_part_data(const shw_buffer* buffer, uint64_t index) SHW_NOEXCEPT;

/* Number of bytes of part `index`; 0 when there is no such part.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_buffer_part_size(const shw_buffer* buffer, uint64_t index) SHW_NOEXCEPT;

/* Releases the buffer. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: buffer
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_buffer_release(shw_buffer* SHW_NULLABLE buffer) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_BUFFER_H */
