/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts: the worker threads, staging memory, log and plugins that calls of one host share. */
#ifndef SHARDWRIGHT_CONTEXT_H
#define SHARDWRIGHT_CONTEXT_H

#include "base.h"
#include "buffer.h"
#include "collective.h"
#include "log.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Threads, memory, log and plugins of a host.
 * Since: 0.1 unstable */
typedef struct shw_context shw_context;

/* Gives `size` bytes at a multiple of `alignment`, NULL when it has none.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void*(SHW_CALLBACK* shw_allocate_fn)(void* user, uint64_t size, uint64_t alignment);

/* Takes back what shw_allocate_fn gave, with the same size and alignment.
 * Threads: any
 * Blocks: no
 * Owns: pointer
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_deallocate_fn)(void* user, void* pointer, uint64_t size,
                                              uint64_t alignment);

/* Allocator of the host for staging memory. Both functions are needed; they must outlive the
 * context.
 * Since: 0.1 unstable */
typedef struct shw_allocator {
  uint32_t struct_size;
  uint32_t flags;
  void* user;
  shw_allocate_fn allocate;
  shw_deallocate_fn release;
} shw_allocator;

/* Options of a context. `threads` 0 = min(cores, 8) workers; `memory_budget` 0 = 256 MiB of
 * staging memory, or a quarter of what the control group (cgroup) of this process has left when
 * the context is made, where that is less, but 8 MiB; records of `log_level` (SHW_LOG_) and above
 * go to `log`, NULL = log off; `allocator` NULL = that of the system. `plugin_path` is a colon
 * separated list of directories that is searched before SHW_PLUGIN_PATH of the environment; NULL =
 * none. `machine`: ranks share memory only with those of their machine whose contexts say the same
 * text, so that a job can tell apart containers of one host; NULL or "" = with all of the machine.
 * Since: 0.1 unstable */
typedef struct shw_context_options {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t threads;
  int32_t log_level;
  uint64_t memory_budget;
  shw_log_fn log;
  void* log_user;
  const shw_allocator* allocator;
  const char* plugin_path;
  const char* machine;
} shw_context_options;

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_ALLOCATOR_SIZE_V1 32
#define SHW_CONTEXT_OPTIONS_SIZE_V1 56

#define SHW_ALLOCATOR_INIT {sizeof(shw_allocator), 0, 0, 0, 0}
#define SHW_CONTEXT_OPTIONS_INIT {sizeof(shw_context_options), 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills an allocator with zeros and its size, as SHW_ALLOCATOR_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_allocator_init(shw_allocator* allocator, uint32_t struct_size) SHW_NOEXCEPT;

/* Fills options with zeros and their size, as SHW_CONTEXT_OPTIONS_INIT does. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_context_options_init(shw_context_options* options,
                                      uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a context and starts its threads. SHW_PLUGIN_PATH and SHW_LOG (a level name; raises or
 * lowers `log_level`) of the environment are read here only, and never in set-uid processes.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_create(const shw_context_options* SHW_NULLABLE options,
                                                   shw_context** out,
                                                   shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Waits for the jobs of the context; cancels what is left when half of `timeout_ns` passed and
 * waits for the rest of it. Afterwards the context takes no new jobs. PENDING when jobs are still
 * running.
 * Threads: any
 * Blocks: wait
 * Owns: -
 * Errors: INVALID_ARGUMENT, PENDING
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_shutdown(shw_context* context, int64_t timeout_ns,
                                                     shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Loads a plugin: a file when `path` has a "/", else the name of one that is looked for in the
 * directories of the options, of SHW_PLUGIN_PATH, and beside this library, as NAME.shw-plugin.json,
 * then as libshardwright_NAME.so. Loading one twice does nothing.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_load_plugin(shw_context* context, const char* path,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Lists plugins, loaded or described by a manifest in the search path, as JSON text.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_plugins(shw_context* context, shw_buffer** out,
                                                    shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Asks a loaded plugin something that its documentation names; question and answer are text.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_ask_plugin(shw_context* context, const char* plugin,
                                                       const char* SHW_NULLABLE question,
                                                       uint64_t question_size, shw_buffer** out,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a storage of a loaded plugin; `config` is text that the plugin understands.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_open_storage(shw_context* context, const char* plugin,
                                                         const char* SHW_NULLABLE config,
                                                         uint64_t config_size, shw_storage** out,
                                                         shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a collective of a loaded plugin; `config` is text that the plugin understands.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_open_collective(
    shw_context* context, const char* plugin, const char* SHW_NULLABLE config, uint64_t config_size,
    shw_collective** out, shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Releases the context; jobs and checkpoints that use it keep it alive. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: context
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_context_release(shw_context* SHW_NULLABLE context) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_CONTEXT_H */
