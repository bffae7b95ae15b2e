// SPDX-License-Identifier: Apache-2.0
//
// LoadPlan: what one rank reads from which stored chunk into which piece, and what it is told about
// names, dtypes and shapes that differ. Value; thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/read_column.h"
#include "core/tensor/dtype.h"

namespace shardwright::plan {

struct ObjectRead {
  uint32_t entry = 0;   // object in the State
  uint64_t object = 0;  // object in the stored catalog
};

struct CastNote {
  uint32_t entry = 0;
  DType stored = DType::kInvalid;
  DType wanted = DType::kInvalid;
};

// An entry whose global shape differs from the stored one: both are anchored at the origin, what
// lies outside the stored shape becomes zero, what lies outside the wanted shape is not read.
struct ShapeNote {
  uint32_t entry = 0;
  uint64_t tensor = 0;  // tensor in the stored catalog
};

struct LoadPlan {
  int32_t rank = 0;
  std::string generation;  // of the checkpoint; execute refuses another one
  ReadColumn reads;        // ascending keys
  std::vector<ObjectRead> objects;
  std::vector<std::string> loaded;      // names
  std::vector<std::string> missing;     // wanted, not stored
  std::vector<std::string> unexpected;  // stored, not wanted
  std::vector<CastNote> casts;          // ascending entry
  std::vector<ShapeNote> shapes;        // ascending entry
};

}  // namespace shardwright::plan
