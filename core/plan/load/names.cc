// SPDX-License-Identifier: Apache-2.0
//
// Which stored entry a wanted name means, and the names that find no partner.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/match_internal.h"

namespace shardwright::plan::internal {
namespace {

bool usable_by(int32_t owner, int32_t rank) {
  return owner < 0 || owner == rank;
}

// "; it is stored as rank_local of ranks 0, 1" or "": records of that name which belong to other
// ranks.
template <typename Records>
std::string owners_text(const Catalog& catalog, const Records& records, std::string_view name) {
  std::vector<int32_t> ranks;
  for (const auto& record : records) {
    if (record.rank >= 0 && catalog.texts.at(record.name) == name) ranks.push_back(record.rank);
  }
  if (ranks.empty()) return "";
  const size_t listed = std::min<size_t>(ranks.size(), 8);
  return fmt::format(
      "; it is stored as rank_local of {} rank{}: {}{}", ranks.size(), ranks.size() == 1 ? "" : "s",
      fmt::join(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(listed), ", "),
      listed < ranks.size() ? ", ..." : "");
}

}  // namespace

NameRules rules_of(const LoadRules& rules, std::string_view name) {
  for (const StrictPattern& pattern : rules.strict) {
    if (glob_matches(pattern.glob, name))
      return {pattern.missing, pattern.unexpected, pattern.cast, pattern.shape};
  }
  return {rules.missing, rules.unexpected, rules.cast, rules.shape};
}

int64_t stored_tensor(const CatalogIndex& stored, const TensorRef& wanted, int32_t rank) {
  const int64_t found = stored.find_tensor(wanted.name, rank);
  if (found < 0 || wanted.kind != EntryKind::kRankLocal) return found;
  return stored.catalog().tensors[static_cast<size_t>(found)].rank == rank ? found : -1;
}

int64_t stored_object(const CatalogIndex& stored, const ObjectEntry& wanted, int32_t rank) {
  const int64_t found = stored.find_object(wanted.name, rank);
  if (found < 0 || wanted.kind != EntryKind::kRankLocal) return found;
  return stored.catalog().objects[static_cast<size_t>(found)].rank == rank ? found : -1;
}

Status not_stored(const CatalogIndex& stored, std::string_view noun, std::string_view name,
                  int32_t rank) {
  const Catalog& catalog = stored.catalog();
  const bool tensor = noun == "tensor";
  std::string message = fmt::format("{} '{}' is not stored", noun, escape_text(name));
  if (rank >= 0) message += fmt::format(" for rank {}", rank);
  message += tensor ? owners_text(catalog, catalog.tensors, name)
                    : owners_text(catalog, catalog.objects, name);
  const bool other_type =
      tensor ? stored.find_object(name, rank) >= 0 : stored.find_tensor(name, rank) >= 0;
  if (other_type)
    message += tensor ? "; the name is that of a byte object" : "; the name is that of a tensor";
  std::vector<std::string_view> names;
  for (size_t t = 0; tensor && t < catalog.tensors.size(); ++t) {
    if (usable_by(catalog.tensors[t].rank, rank)) names.push_back(catalog.tensor_name(t));
  }
  for (size_t i = 0; !tensor && i < catalog.objects.size(); ++i) {
    if (usable_by(catalog.objects[i].rank, rank)) names.push_back(catalog.object_name(i));
  }
  const std::vector<std::string> near = nearest_names(name, names, kNearestNames);
  const std::string shown = escape_text(fmt::format("'{}'", fmt::join(near, "', '")));
  if (!near.empty()) message += fmt::format("; nearest stored names: {}", shown);
  Status status = not_found(std::move(message)).with_detail("tensor", name);
  if (rank >= 0) status = std::move(status).with_detail("rank", std::to_string(rank));
  return std::move(status).with_detail("hint",
                                       escape_text(fmt::format("{}", fmt::join(near, ", "))));
}

std::vector<std::string> unexpected_names(const State& state, const Catalog& stored, int32_t rank) {
  std::vector<std::string> names;
  for (size_t t = 0; t < stored.tensors.size(); ++t) {
    const std::string_view name = stored.tensor_name(t);
    if (usable_by(stored.tensors[t].rank, rank) && !state.find_tensor(name).has_value())
      names.emplace_back(name);
  }
  for (size_t i = 0; i < stored.objects.size(); ++i) {
    const std::string_view name = stored.object_name(i);
    if (usable_by(stored.objects[i].rank, rank) && !state.find_object(name).has_value())
      names.emplace_back(name);
  }
  return names;
}

}  // namespace shardwright::plan::internal
