// SPDX-License-Identifier: Apache-2.0
//
// Annotations for clang's -Wthread-safety: they tie data to the mutex that guards it, so that a
// forgotten lock fails to compile. Empty under other compilers. core/concurrency/mutex.h has the
// annotated mutex that they refer to.
#pragma once

#if defined(__clang__)
#define SHW_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define SHW_THREAD_ANNOTATION(x)
#endif

// Type that can be held, e.g. a mutex.
#define SHW_CAPABILITY(name) SHW_THREAD_ANNOTATION(capability(name))
// Type whose constructor acquires and whose destructor releases.
#define SHW_SCOPED_CAPABILITY SHW_THREAD_ANNOTATION(scoped_lockable)
// Data member that may be touched only with the mutex held; the second form guards what a pointer
// points to.
#define SHW_GUARDED_BY(x) SHW_THREAD_ANNOTATION(guarded_by(x))
#define SHW_PT_GUARDED_BY(x) SHW_THREAD_ANNOTATION(pt_guarded_by(x))
// Function that needs the mutex held, or must be called without it.
#define SHW_REQUIRES(...) SHW_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define SHW_EXCLUDES(...) SHW_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// Function that takes, drops, or tries to take the mutex.
#define SHW_ACQUIRE(...) SHW_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define SHW_RELEASE(...) SHW_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define SHW_TRY_ACQUIRE(...) SHW_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
// Function whose locking the analysis cannot follow; the reason stands beside each use.
#define SHW_NO_THREAD_SAFETY_ANALYSIS SHW_THREAD_ANNOTATION(no_thread_safety_analysis)
