// SPDX-License-Identifier: Apache-2.0
//
// Nested paths of entries as compact JSON array text: a text key of a mapping is a JSON string, an
// integer key a JSON integer, a position in a list a one-element array. ["optim", 0, [1]] is
// optim[0 (int key)][1 (list position)]. The flat name joins the parts with ".". Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shardwright {

enum class PathPartKind { kText, kInteger, kPosition };
struct PathPart {
  PathPartKind kind = PathPartKind::kText;
  std::string text;  // the key itself, decimal text for integers (any size) and positions
  friend bool operator==(const PathPart&, const PathPart&) = default;
};

// INVALID_ARGUMENT for text that is not such an array, too long or too deep (256 parts).
Result<std::vector<PathPart>> parse_path(std::string_view text);
// True when text is the canonical text of a path whose parts join to name. Quick; it may say false
// of a path with escapes that is canonical all the same. Both texts are UTF-8.
bool is_canonical_path_of(std::string_view text, std::string_view name);
std::string format_path(const std::vector<PathPart>& parts);  // compact, canonical
std::string join_path(const std::vector<PathPart>& parts);    // flat name

}  // namespace shardwright
