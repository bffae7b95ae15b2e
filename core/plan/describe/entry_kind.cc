// SPDX-License-Identifier: Apache-2.0
//
// Kinds of entries: pattern, then the entry, then its looks.
#include "core/plan/describe/entry_kind.h"

#include "core/base/text.h"

namespace shardwright::plan::internal {

EntryKind tensor_kind(std::span<const KindPattern> patterns, std::string_view name, EntryKind own,
                      bool whole) {
  for (const KindPattern& pattern : patterns) {
    if (pattern.kind != EntryKind::kAuto && glob_matches(pattern.glob, name)) return pattern.kind;
  }
  if (own != EntryKind::kAuto) return own;
  return whole ? EntryKind::kReplicated : EntryKind::kSharded;
}

EntryKind object_kind(std::span<const KindPattern> patterns, std::string_view name, EntryKind own) {
  for (const KindPattern& pattern : patterns) {
    if (pattern.kind == EntryKind::kAuto || pattern.kind == EntryKind::kSharded) continue;
    if (glob_matches(pattern.glob, name)) return pattern.kind;
  }
  return own == EntryKind::kAuto ? EntryKind::kReplicated : own;
}

}  // namespace shardwright::plan::internal
