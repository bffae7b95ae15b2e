/* SPDX-License-Identifier: Apache-2.0
 *
 * Base of the C interface: platform check, macros, status codes, versions and the error object.
 *
 * Rules that hold for every header of this folder:
 * - Any function may be called from any thread. A `const` handle permits concurrent calls on that
 *   object; a non-const one needs external serialisation where `Threads:` says exclusive(handle).
 * - A function that can fail returns a status and takes `err` last. `err` may be NULL; `*err` must
 *   be NULL on entry and is written on failure only. `out` is written on success only.
 * - Every struct starts with `struct_size`, which the caller sets; zero is each field's default.
 * - Callbacks must not unwind, longjmp or end their thread through a function of this library.
 * - After fork only abi_version, version_string, status_name and release work in the child. */
#ifndef SHARDWRIGHT_BASE_H
#define SHARDWRIGHT_BASE_H

#include <stdint.h>

#if defined(SWIG)
#define SHW_API
#define SHW_NOEXCEPT
#define SHW_MUST_USE
#define SHW_DEPRECATED(text)
#else
#if !defined(__linux__) || !defined(__LP64__) || !defined(__BYTE_ORDER__)
#error "shardwright supports 64-bit little-endian Linux only"
#elif __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "shardwright supports 64-bit little-endian Linux only"
#endif
#define SHW_API __attribute__((visibility("default")))
#define SHW_MUST_USE __attribute__((warn_unused_result))
#define SHW_DEPRECATED(text) __attribute__((deprecated(text)))
#if defined(__cplusplus)
#define SHW_NOEXCEPT noexcept
#else
#define SHW_NOEXCEPT
#endif
#endif

/* SHW_NULLABLE: NULL is allowed. SHW_OWNED: the receiver must release it. SHW_BORROWED: valid until
 * the event that the comment names. SHW_CALLBACK: calling convention of function pointers. */
#define SHW_NULLABLE
#define SHW_OWNED
#define SHW_BORROWED
#define SHW_CALLBACK

/* Version of the binary interface that this header describes.
 * Since: 0.1 unstable */
#define SHW_ABI_MAJOR 0
#define SHW_ABI_MINOR 1

#if defined(__cplusplus)
extern "C" {
#endif

/* 0 = false, 1 = true.
 * Since: 0.1 unstable */
typedef uint8_t shw_bool;

/* Outcome of a call: one of the SHW_ status numbers below.
 * Since: 0.1 unstable */
typedef int32_t shw_status;

/* Status numbers; frozen. PENDING and BUFFER_TOO_SMALL are answers, not errors.
 * Since: 0.1 unstable */
enum {
  SHW_OK = 0,
  SHW_CANCELLED = 1,
  SHW_UNKNOWN = 2,
  SHW_INVALID_ARGUMENT = 3,
  SHW_DEADLINE_EXCEEDED = 4,
  SHW_NOT_FOUND = 5,
  SHW_ALREADY_EXISTS = 6,
  SHW_PERMISSION_DENIED = 7,
  SHW_RESOURCE_EXHAUSTED = 8,
  SHW_FAILED_PRECONDITION = 9,
  SHW_ABORTED = 10,
  SHW_OUT_OF_RANGE = 11,
  SHW_UNIMPLEMENTED = 12,
  SHW_INTERNAL = 13,
  SHW_UNAVAILABLE = 14,
  SHW_DATA_LOSS = 15,
  SHW_UNAUTHENTICATED = 16,
  SHW_PENDING = 32,
  SHW_BUFFER_TOO_SMALL = 33,
  SHW_HOST_EXCEPTION = 34,
  SHW_DECLINED = 35
};

/* Why a call failed: a code, one sentence per cause, details and linked causes. Immutable.
 * Since: 0.1 unstable */
typedef struct shw_error shw_error;

/* Table of all functions for hosts that load the library with dlopen; see api.h.
 * Since: 0.1 unstable */
typedef struct shw_api shw_api;

/* One fact about an error, such as key "tensor" with the tensor's name as value. Frozen: this
 * struct never grows. The value is UTF-8 text of `value_size` bytes followed by a NUL.
 * Since: 0.1 unstable */
typedef struct shw_error_detail {
  const char* key;
  const char* value;
  uint64_t value_size;
} shw_error_detail;

/* Writes the interface version of the loaded library. NULL pointers are skipped.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 stable */
SHW_API void shw_abi_version(uint32_t* SHW_NULLABLE major,
                             uint32_t* SHW_NULLABLE minor) SHW_NOEXCEPT;

/* Release of the loaded library as static text, such as "0.1.0".
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_version_string(void) SHW_NOEXCEPT;

/* Static JSON text that says how the library was built: commit, compiler, engines of I/O, plugins.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_build_info(void) SHW_NOEXCEPT;

/* Static name of a status without prefix, such as "NOT_FOUND"; "UNRECOGNISED" for other numbers.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_status_name(shw_status status) SHW_NOEXCEPT;

/* Code of the error; 0 for NULL.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API shw_status shw_error_code(const shw_error* error) SHW_NOEXCEPT;

/* Message of the error, outermost sentence first; borrowed until the error is released.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_error_message(const shw_error* error,
                                      uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Number of details of the error.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API uint64_t shw_error_detail_count(const shw_error* error) SHW_NOEXCEPT;

/* Writes detail `index` (from 0) to `out`, borrowed until the error is released.
 * Answers OUT_OF_RANGE, `out` untouched, when there is no such detail.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_error_detail_at(const shw_error* error, uint64_t index,
                                                    shw_error_detail* out) SHW_NOEXCEPT;

/* 1 when the same call may succeed if it is repeated from its start.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API shw_bool shw_error_is_retryable(const shw_error* error) SHW_NOEXCEPT;

/* Error that caused this one, borrowed until this one is released; NULL when there is none.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const shw_error* shw_error_cause(const shw_error* error) SHW_NOEXCEPT;

/* Call stack of the place that made the error; empty in release builds.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: -
 * Errors: -
 * Since: 0.1 unstable */
SHW_API const char* shw_error_backtrace(const shw_error* error,
                                        uint64_t* SHW_NULLABLE size) SHW_NOEXCEPT;

/* Makes an error in the library's allocator and returns `code`, so that a callback can end with
 * this call. Texts are copied; `cause` moves in. Never fails for lack of memory: the static
 * out-of-memory error is given then. Code OK or NULL `out` is INVALID_ARGUMENT, nothing is made.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: out, cause
 * Errors: INVALID_ARGUMENT
 * Since: 0.1 unstable */
SHW_API shw_status shw_error_create(shw_status code, const char* SHW_NULLABLE message,
                                    uint64_t message_size,
                                    const shw_error_detail* SHW_NULLABLE details,
                                    uint64_t detail_count, shw_error* SHW_NULLABLE cause,
                                    shw_error** out) SHW_NOEXCEPT;

/* Releases an error and its causes. NULL is allowed.
 * Threads: any, callback-safe
 * Blocks: no
 * Owns: error
 * Errors: -
 * Since: 0.1 unstable */
SHW_API void shw_error_release(shw_error* SHW_NULLABLE error) SHW_NOEXCEPT;

/* Gives the function table of the library, which lives for the process. UNIMPLEMENTED names both
 * versions when the library has another major, an older minor or, while major is 0, a newer one.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED
 * Since: 0.1 stable */
SHW_API SHW_MUST_USE shw_status shw_get_api(uint32_t major, uint32_t min_minor, const shw_api** out,
                                            shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

/* A table of functions beside the main one. It begins with `uint32_t struct_size` and `uint32_t
 * version`, as the header of its name declares it; `next` is NULL at the end of the list.
 * Since: 0.1 unstable */
typedef struct shw_extension {
  uint32_t struct_size;
  uint32_t version;
  const char* name;
  const void* functions;
  const struct shw_extension* next;
} shw_extension;

/* Gives the functions of an extension, such as shw_megatron_api for "megatron"; they live for the
 * process. NOT_FOUND names the extensions that there are. Versions are whole: another one than the
 * library's is UNIMPLEMENTED with both.
 * Threads: any
 * Blocks: no
 * Owns: -
 * Errors: INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED
 * Since: 0.1 unstable */
SHW_API SHW_MUST_USE shw_status shw_get_extension(const char* name, uint32_t version,
                                                  const void** out,
                                                  shw_error** SHW_NULLABLE err) SHW_NOEXCEPT;

#if defined(__cplusplus)
}
#endif

#endif /* SHARDWRIGHT_BASE_H */
