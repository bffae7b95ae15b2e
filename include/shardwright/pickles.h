/* SPDX-License-Identifier: Apache-2.0 */
/* What the pickles of a place would import and call, for people who decide whether they trust it.
 * Nothing of a pickle is ever imported, called or run here. */
#ifndef SHARDWRIGHT_PICKLES_H
#define SHARDWRIGHT_PICKLES_H

#include "base.h"
#include "buffer.h"
#include "context.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* What the pickles at `path` (a file, or all files below a directory) would import and call if they
 * were unpickled, whether a checkpoint can be opened there or not. `out` is one JSON object:
 * `globals` (each with `module`, `name`, `known`, `calls`, `file`, `record`, `offset`, ...),
 * `unknown` (how many are not known to make plain values), `failures` and `unread` (what could not
 * be looked at to its end), `files`, `pickles`, `notes`.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_scan_pickles(shw_context* context,
                                                 shw_storage* SHW_NULLABLE storage,
                                                 const char* path, shw_buffer** out,
                                                 shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Writes files with pickles once more, with None in place of what is not known; the original is
 * only read. Of a file `target` becomes a whole file. Of a directory, indexes of torch DCP and
 * other files with pickles are written below `target`; an index leaves out entries whose items are
 * not clean. `out` is one JSON object: `files`, each with `file`, `replaced` and `left_out`.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, UNIMPLEMENTED (nothing has pickles, or they
 *   are compressed), DATA_LOSS, RESOURCE_EXHAUSTED, UNAVAILABLE, PERMISSION_DENIED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_clean_pickles(shw_context* context,
                                                  shw_storage* SHW_NULLABLE source_storage,
                                                  const char* source,
                                                  shw_storage* SHW_NULLABLE target_storage,
                                                  const char* target, shw_buffer** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif
