// SPDX-License-Identifier: Apache-2.0
//
// Puts the descriptions of representatives and the parts of ranks together.
#include "core/plan/rank_plans.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "core/base/hash_index.h"
#include "core/base/limits.h"
#include "core/integrity/digest.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/options_text.h"

namespace shardwright::plan {
namespace {

uint64_t hash_of(const Digest128& digest) {
  return hash_text({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

// The rank's number among distinct digests, in order of their first rank.
struct Numbering {
  std::vector<uint32_t> numbers;      // one per rank
  std::vector<uint32_t> first_ranks;  // one per distinct digest
};

Numbering number_digests(std::span<const Digest128> digests) {
  Numbering out;
  HashIndex index;
  const auto first_digest = [&](size_t i) -> const Digest128& {
    return digests[out.first_ranks[i]];
  };
  out.numbers.reserve(digests.size());
  for (uint32_t r = 0; r < digests.size(); ++r) {
    if (r > 0 && digests[r] == digests[r - 1]) {
      out.numbers.push_back(out.numbers.back());
      continue;
    }
    const uint64_t hash = hash_of(digests[r]);
    auto found = index.find(hash, [&](size_t i) { return first_digest(i) == digests[r]; });
    if (!found.has_value()) {
      found = out.first_ranks.size();
      out.first_ranks.push_back(r);
      index.reserve(out.first_ranks.size(), [&](size_t i) { return hash_of(first_digest(i)); });
      index.insert(hash, *found);
    }
    out.numbers.push_back(static_cast<uint32_t>(*found));
  }
  return out;
}

Status of_rank(Status status, uint32_t rank) {
  return std::move(status).with_detail("rank", fmt::to_string(rank));
}

bool needs_part(const Description& description) {
  return std::ranges::find(description.forms, uint32_t{kBoxes}) != description.forms.end() ||
         std::ranges::find(description.catalog.objects, EntryKind::kRankLocal,
                           &ObjectRecord::kind) != description.catalog.objects.end();
}

Status check_description(const RankPlans& ranks, size_t d) {
  const Description& description = ranks.descriptions[d];
  const uint32_t rank = ranks.first_ranks[d];
  const std::vector<std::string> findings = description_findings(description, 1);
  if (!findings.empty()) {
    return of_rank(
        data_loss(fmt::format("the description of rank {} is wrong: {}", rank, findings[0])), rank);
  }
  if (description.digest != ranks.digests[d]) {
    return of_rank(invalid_argument(fmt::format(
                       "the description of rank {} is not the one whose digest it gave", rank)),
                   rank);
  }
  const Description& first = ranks.descriptions[0];
  if (description.options_digest == first.options_digest) return {};
  return options_differ({0, first.options_text},
                        {static_cast<int32_t>(rank), description.options_text});
}

Status check_part(const RankPlans& ranks, const PartView& part) {
  const auto count = static_cast<int32_t>(ranks.rank_count());
  const auto rank = static_cast<uint32_t>(part.rank);
  if (part.rank < 0 || part.rank >= count || (part.world_size != count && part.world_size != 0)) {
    return invalid_argument(fmt::format("a part is that of rank {} of {}, but there are {} ranks",
                                        part.rank, part.world_size, count))
        .with_detail("rank", fmt::to_string(part.rank));
  }
  const uint32_t number = ranks.description_of_rank[rank];
  if (part.description_digest != ranks.digests[number]) {
    return of_rank(
        invalid_argument(fmt::format("the part of rank {} belongs to another description", rank)),
        rank);
  }
  const std::vector<std::string> findings = part_findings(part, &ranks.descriptions[number], 1);
  if (findings.empty()) return {};
  return of_rank(invalid_argument(fmt::format("the part of rank {}: {}", rank, findings[0])), rank);
}

// Puts each part at the place of its rank.
Status place_parts(std::vector<PartView> parts, RankPlans* ranks) {
  for (const PartView& part : parts) SHW_RETURN_IF_ERROR(check_part(*ranks, part));
  std::erase_if(parts, [](const PartView& part) { return part.empty(); });
  std::vector<bool> placed(ranks->rank_count(), false);
  if (!parts.empty()) ranks->parts.resize(ranks->rank_count());
  for (const PartView& part : parts) {
    const auto rank = static_cast<uint32_t>(part.rank);
    if (placed[rank])
      return of_rank(invalid_argument(fmt::format("rank {} gives two parts", rank)), rank);
    placed[rank] = true;
    ranks->parts[rank] = part;
  }
  std::vector<bool> needed;
  needed.reserve(ranks->descriptions.size());
  for (const Description& description : ranks->descriptions)
    needed.push_back(needs_part(description));
  for (uint32_t r = 0; r < ranks->rank_count(); ++r) {
    if (placed[r] || !needed[ranks->description_of_rank[r]]) continue;
    return of_rank(
        invalid_argument(fmt::format(
            "the part of rank {}, which has boxes or rank_local objects, is missing", r)),
        r);
  }
  return {};
}

}  // namespace

EntryNumbers::EntryNumbers(const Description& description) {
  uint32_t next = 0;
  lists.reserve(description.forms.size());
  for (size_t t = 0; t < description.forms.size(); ++t) {
    lists.push_back(next);
    next += description.forms[t] == kBoxes ? 1U : 0U;
    has_ruled = has_ruled || description.is_ruled(t);
  }
  next = 0;
  own_sizes.reserve(description.catalog.objects.size());
  for (const ObjectRecord& object : description.catalog.objects) {
    own_sizes.push_back(next);
    next += object.kind == EntryKind::kRankLocal ? 1U : 0U;
  }
}

size_t RankView::item_count() const {
  return part.boxes.size() + description.catalog.objects.size() +
         (numbers.has_ruled ? description.forms.size() : 0);
}

uint64_t RankView::bit_count() const {
  return description.forms.size() + description.catalog.objects.size() + part.boxes.size();
}

Box RankView::box_of(uint32_t item) const {
  if (item < part.boxes.size()) {
    const uint32_t tensor = part.boxes[item].tensor;
    const BoxList& boxes = list(tensor);
    return internal::list_box(part, boxes, item - boxes.begin, description.catalog.shape(tensor));
  }
  const uint32_t tensor = item - tensor_item(0);
  return box_of_axes(description.axes_of(tensor), description.catalog.shape(tensor),
                     static_cast<int32_t>(rank));
}

std::vector<Box> RankView::boxes_of(uint32_t tensor) const {
  std::vector<Box> boxes;
  if (description.is_ruled(tensor)) {
    boxes.push_back(box_of(tensor_item(tensor)));
  } else if (description.forms[tensor] == kBoxes) {
    const BoxList& held = list(tensor);
    for (uint32_t b = 0; b < held.count; ++b) boxes.push_back(box_of(held.begin + b));
  }
  return boxes;
}

uint64_t RankView::object_bytes(uint32_t object) const {
  const ObjectRecord& record = description.catalog.objects[object];
  if (record.kind != EntryKind::kRankLocal) return record.size_bytes;
  return part.object_sizes[numbers.own_sizes[object]];
}

const PartView& RankPlans::part(uint32_t rank) const {
  static const PartView kNothing;
  return parts.empty() ? kNothing : parts[rank];
}

std::vector<int32_t> representative_ranks(std::span<const Digest128> digests) {
  const std::vector<uint32_t> firsts = number_digests(digests).first_ranks;
  return {firsts.begin(), firsts.end()};
}

Result<RankPlans> make_rank_plans(std::span<const Digest128> digests,
                                  std::vector<Description> descriptions,
                                  std::vector<PartView> parts,
                                  std::vector<std::shared_ptr<const void>> owned) {
  if (digests.empty() || digests.size() > static_cast<size_t>(kMaxWorldSize))
    return invalid_argument(fmt::format("{} ranks are not 1 to {}", digests.size(), kMaxWorldSize));
  Numbering numbering = number_digests(digests);
  if (descriptions.size() != numbering.first_ranks.size()) {
    return invalid_argument(fmt::format("{} descriptions for {} distinct digests",
                                        descriptions.size(), numbering.first_ranks.size()))
        .with_detail("expected", std::to_string(numbering.first_ranks.size()))
        .with_detail("found", std::to_string(descriptions.size()));
  }
  RankPlans ranks;
  ranks.descriptions = std::move(descriptions);
  ranks.first_ranks = std::move(numbering.first_ranks);
  ranks.description_of_rank = std::move(numbering.numbers);
  ranks.owned = std::move(owned);
  for (const uint32_t first : ranks.first_ranks) ranks.digests.push_back(digests[first]);
  for (size_t d = 0; d < ranks.descriptions.size(); ++d) {
    SHW_RETURN_IF_ERROR(check_description(ranks, d));
    ranks.numbers.emplace_back(ranks.descriptions[d]);
  }
  SHW_RETURN_IF_ERROR(place_parts(std::move(parts), &ranks));
  return ranks;
}

Result<RankPlans> make_rank_plans(std::span<const Digest128> digests,
                                  std::vector<Description> descriptions,
                                  std::vector<LocalPart> parts) {
  auto kept = std::make_shared<const std::vector<LocalPart>>(std::move(parts));
  std::vector<PartView> views;
  views.reserve(kept->size());
  for (const LocalPart& part : *kept) views.push_back(view_of(part));
  return make_rank_plans(digests, std::move(descriptions), std::move(views), {std::move(kept)});
}

Digest128 local_digest(const Digest128& description, const PartView& part, RankPosition position) {
  std::vector<std::byte> bytes;
  const auto append = [&bytes](const auto& values) {
    const auto more = std::as_bytes(std::span(values));
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(description);
  append(std::array{position.rank, position.world_size});
  PartView bare = part;
  bare.digest_tensors = {};
  bare.tensor_digests = {};
  std::apply([&](const auto&... column) { (append(column), ...); }, columns_of_part(bare));
  return integrity::xxh3_128(bytes);
}

Digest128 local_digest_of(const RankPlans& ranks, uint32_t rank) {
  return local_digest(ranks.digests[ranks.description_of_rank[rank]], ranks.part(rank),
                      {static_cast<int32_t>(rank), static_cast<int32_t>(ranks.rank_count())});
}

}  // namespace shardwright::plan
