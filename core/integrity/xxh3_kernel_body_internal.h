// SPDX-License-Identifier: Apache-2.0
//
// Body of one kernel source: defines the table SHW_XXH3_TABLE (its text name SHW_XXH3_NAME) from
// the xxHash header as the including file's compile options vectorise it. All functions are
// file-local, so no wide code leaks to other files. Included once per kernel source, on purpose
// without a guard.

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "core/integrity/xxh3_kernel_internal.h"

namespace shardwright::integrity::internal {
namespace {

static_assert(sizeof(XXH3_state_t) <= sizeof(Xxh3State));
static_assert(alignof(XXH3_state_t) <= alignof(Xxh3State));

void write_canonical(XXH128_hash_t hash, unsigned char* digest) {
  XXH128_canonicalFromHash(reinterpret_cast<XXH128_canonical_t*>(digest), hash);
}

// Behind wide code, on every way out: with dirty upper halves of the vector registers each SSE
// instruction of the callers waits for them, until something clears them. gcc 12 leaves it out of
// functions whose wide part is called and not inlined.
void leave_wide_code() {
#if defined(__AVX__)
  _mm256_zeroupper();
#endif
}

void kernel_hash(const void* bytes, size_t size_bytes, unsigned char* digest) {
  write_canonical(XXH3_128bits(bytes, size_bytes), digest);
  leave_wide_code();
}

// The state begins all zero, so that no uninitialised byte is ever read.
void kernel_reset(Xxh3State* state) {
  *state = Xxh3State{};
  (void)XXH3_128bits_reset(reinterpret_cast<XXH3_state_t*>(state->storage));  // fails for NULL only
}

void kernel_update(Xxh3State* state, const void* bytes, size_t size_bytes) {
  if (size_bytes == 0) return;
  (void)XXH3_128bits_update(reinterpret_cast<XXH3_state_t*>(state->storage), bytes,
                            size_bytes);  // fails for NULL only
  leave_wide_code();
}

void kernel_digest(const Xxh3State* state, unsigned char* digest) {
  write_canonical(XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(state->storage)),
                  digest);
  leave_wide_code();
}

}  // namespace

const Xxh3Kernel SHW_XXH3_TABLE = {  // NOLINT(misc-definitions-in-headers): a body, included once
    SHW_XXH3_NAME, &kernel_hash, &kernel_reset, &kernel_update, &kernel_digest};

}  // namespace shardwright::integrity::internal
