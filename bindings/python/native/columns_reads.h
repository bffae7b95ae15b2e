/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads of a torch load plan as one array of int64_t. Private to columns_reads*.c.
 *
 *   read  := kind index index ndim dest_offsets[ndim] storage_offsets[ndim] lengths[ndim]
 *   kind  := READ_TENSOR | READ_BYTES
 *   index := name hint count offsets[count]      ; of the destination, then of the chunk
 *
 * `name` counts in a list of names; `hint` and `count` are READ_NONE for None, and then there are
 * no offsets. */
#ifndef SHW_PY_COLUMNS_READS_H
#define SHW_PY_COLUMNS_READS_H

#include "bindings/python/native/columns_items.h"

enum { READ_TENSOR = 0, READ_BYTES = 1, READ_NONE = -1 };

#endif
