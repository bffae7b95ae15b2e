/* SPDX-License-Identifier: Apache-2.0
 *
 * Log records that the library hands to a function of the host. Nothing is ever written to stdout
 * or stderr. The function is set in the options of a context; without one the log is off. */
#ifndef SHARDWRIGHT_LOG_H
#define SHARDWRIGHT_LOG_H

#include "base.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Levels of log records, in rising order; OFF is a threshold only. INFO: saves and loads that begin
 * and end. DEBUG: their plans, and how long ranks waited for each other. WARNING: what could not be
 * removed, traces that could not be written, jobs that failed after they were released.
 * Since: 0.1 unstable */
enum {
  SHW_LOG_TRACE = 0,
  SHW_LOG_DEBUG = 1,
  SHW_LOG_INFO = 2,
  SHW_LOG_WARNING = 3,
  SHW_LOG_ERROR = 4,
  SHW_LOG_OFF = 5
};

/* One named value of a log record. Frozen: this struct never grows.
 * Since: 0.1 unstable */
typedef struct shw_log_field {
  const char* key;
  const char* value;
  uint64_t value_size;
} shw_log_field;

/* One log record (88 bytes). `time_ns` is wall-clock time since 1970 UTC; `dropped` is the number
 * of records lost before this one. All pointers are borrowed for the call of the log function.
 * Since: 0.1 unstable */
typedef struct shw_log_record {
  uint32_t struct_size;
  uint32_t flags;
  int64_t time_ns;
  uint64_t thread_id;
  uint64_t dropped;
  int32_t line;
  int32_t reserved0;
  const char* component;
  const char* file;
  const char* message;
  uint64_t message_size;
  const shw_log_field* fields;
  uint64_t field_count;
} shw_log_record;

/* Receives log records. May be called on any thread of the library, several at a time; must not
 * call back except for callback-safe functions.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_log_fn)(void* user, int32_t level, const shw_log_record* record);

/* Byte size of the oldest published shw_log_record.
 * Since: 0.1 unstable */
#define SHW_LOG_RECORD_SIZE_V1 88

#define SHW_LOG_RECORD_INIT {sizeof(shw_log_record), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a record with zeros and its size, as SHW_LOG_RECORD_INIT does. NULL is skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_log_record_init(shw_log_record* record, uint32_t struct_size) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_LOG_H */
