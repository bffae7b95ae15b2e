// SPDX-License-Identifier: Apache-2.0
//
// XXH3-128 compiled once per instruction set: the library's baseline stays plain, the best table is
// chosen at run time. Included by the kernel sources, which are compiled with wider instruction
// sets: it must not pull in any C++ library header, since inline functions of those would be shared
// with files that run on every processor. Immutable tables.
#pragma once

#include <stddef.h>

namespace shardwright::integrity::internal {

// Room for the streaming state of every kernel; the layout is the kernel's own, equal in all of
// them.
struct alignas(64) Xxh3State {
  unsigned char storage[640];
};

// Digests are written in canonical big-endian form, 16 bytes.
struct Xxh3Kernel {
  const char* name;
  void (*hash)(const void* bytes, size_t size_bytes, unsigned char* digest);
  void (*reset)(Xxh3State* state);
  void (*update)(Xxh3State* state, const void* bytes, size_t size_bytes);
  void (*digest)(const Xxh3State* state, unsigned char* digest);
};

extern const Xxh3Kernel kXxh3Baseline;
#if defined(SHW_XXH3_WIDE)
extern const Xxh3Kernel kXxh3Avx2;
extern const Xxh3Kernel kXxh3Avx512;
#endif

// The widest kernel that this processor runs.
const Xxh3Kernel& best_xxh3_kernel();

}  // namespace shardwright::integrity::internal
