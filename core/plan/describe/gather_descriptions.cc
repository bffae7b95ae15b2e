// SPDX-License-Identifier: Apache-2.0
//
// Puts descriptions of representatives and parts of ranks together.
#include "core/plan/describe/gather_descriptions.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/hash_index.h"
#include "core/base/limits.h"
#include "core/plan/shared_options.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {
namespace {

std::string_view bytes_of(const Digest128& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

// The rank's number among distinct digests, in order of their first rank.
struct Numbering {
  std::vector<uint32_t> numbers;  // one per rank
  std::vector<int32_t> firsts;    // one per distinct digest
};

Numbering number_digests(std::span<const Digest128> digests) {
  Numbering out;
  HashIndex index;
  const auto first_digest = [&](size_t i) -> const Digest128& {
    return digests[static_cast<size_t>(out.firsts[i])];
  };
  out.numbers.reserve(digests.size());
  for (size_t r = 0; r < digests.size(); ++r) {
    if (r > 0 && digests[r] == digests[r - 1]) {
      out.numbers.push_back(out.numbers.back());
      continue;
    }
    const uint64_t hash = hash_text(bytes_of(digests[r]));
    auto found = index.find(hash, [&](size_t i) { return first_digest(i) == digests[r]; });
    if (!found.has_value()) {
      found = out.firsts.size();
      out.firsts.push_back(static_cast<int32_t>(r));
      index.reserve(out.firsts.size(),
                    [&](size_t i) { return hash_text(bytes_of(first_digest(i))); });
      index.insert(hash, *found);
    }
    out.numbers.push_back(static_cast<uint32_t>(*found));
  }
  return out;
}

bool needs_part(const SymbolicDescription& description) {
  return std::ranges::find(description.forms, uint32_t{kBoxes}) != description.forms.end() ||
         std::ranges::any_of(description.catalog.objects, [](const ObjectRecord& object) {
           return object.kind == EntryKind::kRankLocal;
         });
}

Status check_descriptions(const RankDescriptions& ranks, const std::vector<int32_t>& firsts) {
  for (size_t d = 0; d < ranks.descriptions.size(); ++d) {
    const SymbolicDescription& description = ranks.descriptions[d];
    const std::vector<std::string> findings = description_findings(description, 1);
    if (!findings.empty()) {
      return data_loss(
                 fmt::format("the description of rank {} is wrong: {}", firsts[d], findings[0]))
          .with_detail("rank", std::to_string(firsts[d]));
    }
    SHW_ASSIGN_OR_RETURN(const Digest128 digest, symbolic_digest(description));
    if (digest != ranks.digests[d]) {
      return invalid_argument(
                 fmt::format("the description of rank {} is not the one whose digest it gave",
                             firsts[d]))
          .with_detail("rank", std::to_string(firsts[d]));
    }
    if (description.options_digest == ranks.descriptions[0].options_digest) continue;
    return options_differ({0, ranks.descriptions[0].options_text},
                          {firsts[d], description.options_text});
  }
  return {};
}

Status check_part(const RankDescriptions& ranks, const SymbolicPart& part) {
  const std::string rank = std::to_string(part.rank);
  if (part.rank < 0 || part.rank >= ranks.rank_count() || part.world_size != ranks.rank_count()) {
    return invalid_argument(fmt::format("a part is that of rank {} of {}, but there are {} ranks",
                                        part.rank, part.world_size, ranks.rank_count()))
        .with_detail("rank", rank);
  }
  const uint32_t number = ranks.description_of_rank[static_cast<size_t>(part.rank)];
  if (part.description_digest != ranks.digests[number]) {
    return invalid_argument(
               fmt::format("the part of rank {} belongs to another description", part.rank))
        .with_detail("rank", rank);
  }
  const std::vector<std::string> findings = part_findings(ranks.descriptions[number], part, 1);
  if (findings.empty()) return {};
  return invalid_argument(findings[0]).with_detail("rank", rank);
}

Status check_parts(const RankDescriptions& ranks) {
  for (size_t i = 0; i < ranks.parts.size(); ++i) {
    SHW_RETURN_IF_ERROR(check_part(ranks, ranks.parts[i]));
    if (i == 0 || ranks.parts[i].rank != ranks.parts[i - 1].rank) continue;
    return invalid_argument(fmt::format("rank {} gives two parts", ranks.parts[i].rank))
        .with_detail("rank", std::to_string(ranks.parts[i].rank));
  }
  std::vector<bool> needed;
  needed.reserve(ranks.descriptions.size());
  for (const SymbolicDescription& description : ranks.descriptions)
    needed.push_back(needs_part(description));
  if (std::ranges::find(needed, true) == needed.end()) return {};
  for (int32_t r = 0; r < ranks.rank_count(); ++r) {
    if (!needed[ranks.description_of_rank[static_cast<size_t>(r)]]) continue;
    if (ranks.part_of(r) != nullptr) continue;
    return invalid_argument(
               fmt::format("the part of rank {}, which has boxes or rank_local objects, is missing",
                           r))
        .with_detail("rank", std::to_string(r));
  }
  return {};
}

}  // namespace

std::vector<int32_t> representative_ranks(std::span<const Digest128> digests) {
  return number_digests(digests).firsts;
}

Result<RankDescriptions> make_rank_descriptions(std::span<const Digest128> digests,
                                                std::vector<SymbolicDescription> descriptions,
                                                std::vector<SymbolicPart> parts) {
  if (digests.empty() || digests.size() > static_cast<size_t>(kMaxWorldSize)) {
    return invalid_argument(fmt::format("{} ranks are not 1 to {}", digests.size(), kMaxWorldSize));
  }
  Numbering numbering = number_digests(digests);
  if (descriptions.size() != numbering.firsts.size()) {
    return invalid_argument(fmt::format("{} descriptions for {} distinct digests",
                                        descriptions.size(), numbering.firsts.size()))
        .with_detail("expected", std::to_string(numbering.firsts.size()))
        .with_detail("found", std::to_string(descriptions.size()));
  }
  RankDescriptions ranks;
  ranks.descriptions = std::move(descriptions);
  for (const int32_t first : numbering.firsts)
    ranks.digests.push_back(digests[static_cast<size_t>(first)]);
  ranks.description_of_rank = std::move(numbering.numbers);
  ranks.parts = std::move(parts);
  std::erase_if(ranks.parts, [](const SymbolicPart& part) { return part.empty(); });
  std::ranges::stable_sort(ranks.parts, {}, &SymbolicPart::rank);
  SHW_RETURN_IF_ERROR(check_descriptions(ranks, numbering.firsts));
  SHW_RETURN_IF_ERROR(check_parts(ranks));
  return ranks;
}

}  // namespace shardwright::plan
