/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that HSDP puts work on: lanes on which it runs in order beside the host. Built in: the
 * host itself. Every other device enters as a table of functions (device_table.h). */
#ifndef SHARDWRIGHT_DEVICE_H
#define SHARDWRIGHT_DEVICE_H

#include "base.h"
#include "context.h"
#include "device_table.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A device.
 * Since: 0.1 unstable */
typedef struct shw_device shw_device;

/* Fills a table with zeros, its size and the interface version. NULL is skipped.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_device_vtable_init(shw_device_vtable* vtable, uint32_t struct_size) SHW_NOEXCEPT;

/* Makes a device of a host's table, which is copied. On success it owns `vtable->user` and calls
 * the table's release once.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_device_create(const shw_device_vtable* vtable, shw_device** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes the host as a device. Lanes are threads; with `inline_lanes` 1 what is put on them runs
 * where it is put, which makes an order of events that repeats.
 * Threads: any
 * Blocks: no
 * Owns: out
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_device_create_host(shw_bool inline_lanes, shw_device** out,
                                                       shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Makes a device of a loaded plugin; `config` is text that the plugin understands.
 * Threads: any
 * Blocks: io
 * Owns: out
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED, UNAVAILABLE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_context_open_device(shw_context* context, const char* plugin,
                                                        const char* SHW_NULLABLE config,
                                                        uint64_t config_size, shw_device** out,
                                                        shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* Name of the device, such as "host". Borrowed until the device is released.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_device_name(const shw_device* device,
                                    uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Where memory of the device lies: one of SHW_DEVICE_CPU and its like, and which device of that
 * kind. What lies there enters and leaves with these numbers (shw_tensor, DLPack). 0 for NULL.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_device_type(const shw_device* device) SHW_NOEXCEPT;

/* As shw_device_type, the number among devices of its type, from 0 on.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API int32_t shw_device_id(const shw_device* device) SHW_NOEXCEPT;

/* Releases the device; contexts of HSDP that use it keep it alive. NULL is allowed.
 * Threads: any
 * Blocks: no
 * Owns: device
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_device_release(shw_device* SHW_NULLABLE device) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_DEVICE_H */
