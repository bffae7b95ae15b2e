// SPDX-License-Identifier: Apache-2.0
//
// What all codecs over the records of catalog.fbs share: one record of a vector, and a digest as a
// struct. Pure functions.
#pragma once

#include <cstddef>
#include <cstring>

#include <flatbuffers/vector.h>

#include "core/base/digest128.h"
#include "core/plan/wire/catalog_generated.h"

namespace shardwright::wire {

// One element by copy: the verifier does not prove that a vector's elements are aligned.
// index < vector->size().
template <typename Record>
Record record_at(const flatbuffers::Vector<const Record*>* vector, size_t index) {
  Record record;
  std::memcpy(static_cast<void*>(&record), vector->Data() + index * sizeof(Record), sizeof(Record));
  return record;
}

static_assert(sizeof(Digest) == sizeof(Digest128));

inline Digest encode_digest(const Digest128& digest) {
  Digest out;
  std::memcpy(static_cast<void*>(&out), digest.data(), sizeof(out));
  return out;
}

inline Digest128 decode_digest(const Digest& digest) {
  Digest128 out;
  std::memcpy(out.data(), &digest, sizeof(out));
  return out;
}
// All zero for an absent one.
inline Digest128 decode_digest(const Digest* digest) {
  return digest == nullptr ? Digest128{} : decode_digest(*digest);
}

}  // namespace shardwright::wire
