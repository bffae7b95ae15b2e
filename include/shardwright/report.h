/* SPDX-License-Identifier: Apache-2.0
 *
 * What a save, load, verification or clean-up did. A report is immutable and lives on its own. */
#ifndef SHARDWRIGHT_REPORT_H
#define SHARDWRIGHT_REPORT_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Report of one finished call.
 * Since: 0.1 unstable */
typedef struct shw_report shw_report;

/* Lists of names in a report: entries filled, wanted but not stored, stored but not wanted, filled
 * with another dtype, damage found by a verification, generations removed (or removable), entries
 * cropped or padded from another shape.
 * Since: 0.1 unstable */
enum {
  SHW_REPORT_LOADED = 0,
  SHW_REPORT_MISSING = 1,
  SHW_REPORT_UNEXPECTED = 2,
  SHW_REPORT_CAST = 3,
  SHW_REPORT_FINDING = 4,
  SHW_REPORT_REMOVED = 5,
  SHW_REPORT_SHAPE = 6
};

/* Figures of a report. `bytes` is the payload (elements and objects) that this rank wrote, or what
 * it read from the files; `bytes_over_read` is how much of that lies beyond the boxes that were
 * wanted. `bytes_total` is the payload of the whole checkpoint, `file_count` its data files.
 * `bytes_received` is what came to this rank from others through the collective, `bytes_cached`
 * how much of `bytes` is known to have come from the page cache.
 * Flag 1: the result is not durable. Flag 2: digests were off. Flag 4: not verified on read.
 * Since: 0.1 unstable */
typedef struct shw_report_summary {
  uint32_t struct_size;
  uint32_t flags;
  uint64_t tensor_count;
  uint64_t object_count;
  uint64_t chunk_count;
  uint64_t file_count;
  uint64_t bytes;
  uint64_t bytes_total;
  uint64_t bytes_over_read;
  uint64_t bytes_staged_peak;
  int64_t plan_ns;
  int64_t stage_ns;
  int64_t transfer_ns;
  int64_t sync_ns;
  int64_t commit_ns;
  int64_t elapsed_ns;
  uint64_t bytes_received;
  uint64_t bytes_cached;
} shw_report_summary;

/* Flags of shw_report_summary.
 * Since: 0.1 unstable */
#define SHW_REPORT_NOT_DURABLE 1
#define SHW_REPORT_WITHOUT_DIGESTS 2
#define SHW_REPORT_UNVERIFIED 4

/* Byte size of the oldest published shw_report_summary.
 * Since: 0.1 unstable */
#define SHW_REPORT_SUMMARY_SIZE_V1 136

#define SHW_REPORT_SUMMARY_INIT \
  {sizeof(shw_report_summary), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a summary with zeros and its size, as SHW_REPORT_SUMMARY_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_report_summary_init(shw_report_summary* summary,
                                     uint32_t struct_size) SHW_NOEXCEPT;

/* Whole report as JSON text with "schema": 1; borrowed until the report is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_report_json(const shw_report* report,
                                    uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Writes the figures of the report; `out->struct_size` must be set.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_report_summarize(const shw_report* report,
                                                     shw_report_summary* out,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Number of names in one of the SHW_REPORT_ lists; 0 for an unknown list.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_report_name_count(const shw_report* report, int32_t list) SHW_NOEXCEPT;

/* Name `index` of a list; "" when there is none. Borrowed until the report is released. A cast
 * reads "name: stored dtype -> wanted dtype", a shape likewise, a finding is one sentence.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_report_name(const shw_report* report, int32_t list, uint64_t index,
                                    uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Releases the report. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: report
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_report_release(shw_report* SHW_NULLABLE report) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_REPORT_H */
