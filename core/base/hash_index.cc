// SPDX-License-Identifier: Apache-2.0
#include "core/base/hash_index.h"

#include <xxhash.h>

namespace shardwright {

uint64_t hash_text(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

}  // namespace shardwright
