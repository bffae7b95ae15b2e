// SPDX-License-Identifier: Apache-2.0
#include "core/base/hash_index.h"

#include <sys/random.h>

#include <chrono>

#include <xxhash.h>

namespace shardwright {
namespace {

uint64_t random_seed() {
  uint64_t seed = 0;
  if (::getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != static_cast<ssize_t>(sizeof(seed)))
    seed = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  return seed;
}

}  // namespace

// Names come from files: whoever writes one must not know which of them collide.
uint64_t hash_text(std::string_view text) {
  static const uint64_t kSeed = random_seed();
  return XXH3_64bits_withSeed(text.data(), text.size(), kSeed);
}

}  // namespace shardwright
