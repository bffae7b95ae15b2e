/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugins: shared libraries that bring storages, collectives, communicators and devices. A plugin
 * exports one function, shw_plugin_v1, links nothing of this library, and calls it back through the
 * host table only. */
#ifndef SHARDWRIGHT_PLUGIN_H
#define SHARDWRIGHT_PLUGIN_H

#include "base.h"
#include "collective.h"
#include "communicator.h"
#include "context.h"
#include "device.h"
#include "log.h"
#include "storage.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Name of the function that a plugin exports, of type shw_plugin_entry_fn.
 * Since: 0.1 unstable */
#define SHW_PLUGIN_ENTRY "shw_plugin_v1"

/* shw_error_create for plugins.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: out, cause
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_error_create_fn)(shw_status code, const char* message,
                                                      uint64_t message_size,
                                                      const shw_error_detail* details,
                                                      uint64_t detail_count, shw_error* cause,
                                                      shw_error** out);

/* shw_error_release for plugins.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: error
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_error_release_fn)(shw_error* error);

/* Writes a line to the logs of all contexts of the process.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_log_write_fn)(int32_t level, const char* component,
                                             const char* message, uint64_t message_size);

/* What the library offers to a plugin; lives for the process. `allocate` and `release` take NULL as
 * their user. `reserved0` stands for asynchronous input and output.
 * Since: 0.1 unstable */
typedef struct shw_host_api {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  shw_error_create_fn error_create;
  shw_error_release_fn error_release;
  shw_log_write_fn log_write;
  shw_allocate_fn allocate;
  shw_deallocate_fn release;
  void* reserved0;
  const shw_api* api;
} shw_host_api;

/* Makes one storage: `vtable` comes in as a copy of the plugin's table; the function sets `user`
 * and what else depends on `config`.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_plugin_storage_fn)(void* user, const char* config,
                                                        uint64_t config_size,
                                                        shw_storage_vtable* vtable,
                                                        shw_error** err);

/* Makes one collective, as shw_plugin_storage_fn makes a storage; it also sets rank and size.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_plugin_collective_fn)(void* user, const char* config,
                                                           uint64_t config_size,
                                                           shw_collective_vtable* vtable,
                                                           shw_error** err);

/* Makes one communicator, as shw_plugin_storage_fn makes a storage; it also sets rank and size.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_plugin_communicator_fn)(void* user, const char* config,
                                                             uint64_t config_size,
                                                             shw_communicator_vtable* vtable,
                                                             shw_error** err);

/* Makes one device, as shw_plugin_storage_fn makes a storage.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_plugin_device_fn)(void* user, const char* config,
                                                       uint64_t config_size,
                                                       shw_device_vtable* vtable, shw_error** err);

/* Answers a question of a host in text that the plugin documents, such as a name by which processes
 * find each other. The answer lies where the host's `allocate` put it, for alignment 1, and is the
 * host's from then on; none at all may be NULL.
 * Threads: any
 * Blocks: io
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_plugin_answer_fn)(void* user, const char* question,
                                                       uint64_t question_size, char** out,
                                                       uint64_t* out_size, shw_error** err);

/* Ends the plugin's use of `user`; called when the last context that loaded it is gone.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
typedef void(SHW_CALLBACK* shw_plugin_release_fn)(void* user);

/* What a plugin offers. `name` and `version` are static text. A table that is not NULL must have
 * all required slots and its open function. `answer` and `release` may be NULL.
 * Since: 0.1 unstable */
typedef struct shw_plugin {
  uint32_t struct_size;
  uint32_t flags;
  uint32_t abi_major;
  uint32_t abi_minor;
  const char* name;
  const char* version;
  void* user;
  const shw_storage_vtable* storage;
  shw_plugin_storage_fn storage_open;
  const shw_collective_vtable* collective;
  shw_plugin_collective_fn collective_open;
  const shw_communicator_vtable* communicator;
  shw_plugin_communicator_fn communicator_open;
  const shw_device_vtable* device;
  shw_plugin_device_fn device_open;
  shw_plugin_answer_fn answer;
  shw_plugin_release_fn release;
} shw_plugin;

/* Type of the function that a plugin exports: fills `out`, whose struct_size is set by the library.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: any
 * Since: 0.1 unstable */
typedef shw_status(SHW_CALLBACK* shw_plugin_entry_fn)(const shw_host_api* host, shw_plugin* out,
                                                      shw_error** err);

/* Byte sizes of the oldest published structs of this header.
 * Since: 0.1 unstable */
#define SHW_HOST_API_SIZE_V1 72
#define SHW_PLUGIN_SIZE_V1 120

#define SHW_PLUGIN_INIT \
  {sizeof(shw_plugin), 0, SHW_ABI_MAJOR, SHW_ABI_MINOR, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* Fills a struct with zeros, its size and the interface version. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_plugin_init(shw_plugin* plugin, uint32_t struct_size) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_PLUGIN_H */
