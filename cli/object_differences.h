// SPDX-License-Identifier: Apache-2.0
//
// Objects that two checkpoints hold differently. Bytes are compared, of JSON what they say: formats
// write one value in different ways. Thread-compatible.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/entries.h"

namespace shardwright::cli {

struct ObjectSide {
  const std::string& path;
  const Checkpoint& checkpoint;
  std::vector<ObjectFacts> objects;  // ascending by listed name
};

struct ObjectDifferences {
  std::vector<const ObjectFacts*> only_left;
  std::vector<const ObjectFacts*> only_right;
  std::vector<std::pair<const ObjectFacts*, const ObjectFacts*>> different;
  size_t equal = 0;

  bool none() const { return only_left.empty() && only_right.empty() && different.empty(); }
};

// Facts point into the sides. Without contents the names and content types alone count. Throws a
// Failure for an object that cannot be read.
ObjectDifferences compare_objects(const ObjectSide& left, const ObjectSide& right,
                                  bool with_contents);

}  // namespace shardwright::cli
