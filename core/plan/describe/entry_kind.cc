// SPDX-License-Identifier: Apache-2.0
//
// Kinds of entries: pattern, then the entry, then its looks.
#include "core/base/text.h"
#include "core/plan/describe/entry_kind_internal.h"

namespace shardwright::plan::internal {

EntryKind settle_kind(const TensorRef& entry, const SaveRules& rules) {
  for (const KindPattern& pattern : rules.kinds) {
    if (pattern.kind != EntryKind::kAuto && glob_matches(pattern.glob, entry.name))
      return pattern.kind;
  }
  if (entry.kind != EntryKind::kAuto) return entry.kind;
  return covers_whole(entry) ? EntryKind::kReplicated : EntryKind::kSharded;
}

EntryKind settle_kind(const ObjectEntry& entry, const SaveRules& rules) {
  for (const KindPattern& pattern : rules.kinds) {
    if (pattern.kind == EntryKind::kAuto || pattern.kind == EntryKind::kSharded) continue;
    if (glob_matches(pattern.glob, entry.name)) return pattern.kind;
  }
  return entry.kind == EntryKind::kAuto ? EntryKind::kReplicated : entry.kind;
}

}  // namespace shardwright::plan::internal
