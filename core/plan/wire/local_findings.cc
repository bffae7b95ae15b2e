// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of local and kept plans mean.
#include <algorithm>
#include <limits>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/digest.h"
#include "core/plan/wire/findings_internal.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan::internal {
namespace {

// Pieces of a tensor are listed once; pieces is scratch space.
void check_pieces(const CatalogView& catalog, size_t t, std::vector<uint32_t>* pieces,
                  Findings* findings) {
  const TensorRecord& tensor = catalog.tensors[t];
  const std::span<const ChunkRecord> chunks =
      catalog.boxes.subspan(tensor.chunk_begin, tensor.chunk_count);
  if (chunks.empty()) return;
  bool doubled = false;
  uint32_t last = chunks[0].place;
  bool ascending = true;
  for (size_t c = 1; c < chunks.size(); ++c) {
    ascending &= chunks[c].place > last;
    last = chunks[c].place;
  }
  if (!ascending) {
    pieces->clear();
    for (const ChunkRecord& chunk : chunks) pieces->push_back(chunk.place);
    std::sort(pieces->begin(), pieces->end());
    doubled = std::adjacent_find(pieces->begin(), pieces->end()) != pieces->end();
    last = pieces->back();
  }
  if (doubled || last == kObjectPiece) findings->add("tensor {} has a wrong piece", t);
}

void check_chunk_numbers(const CatalogView& catalog, bool kept, Findings* findings) {
  uint64_t numbers = 0;
  for (const ChunkRecord& chunk : catalog.boxes) numbers |= chunk.number;
  const uint64_t allowed = kept ? std::numeric_limits<uint32_t>::max() : 0;
  if ((numbers & ~allowed) == 0) return;
  for (size_t c = 0; c < catalog.boxes.size(); ++c) {
    if ((catalog.boxes[c].number & ~allowed) != 0)
      findings->add("chunk {} of a local plan has a number", c);
  }
}

void check_local_objects(const LocalView& view, Findings* findings) {
  for (size_t i = 0; i < view.catalog.objects.size(); ++i) {
    const ObjectRecord& object = view.catalog.objects[i];
    if (object.rank >= 0 && object.rank != view.rank)
      findings->add("object {} belongs to rank {}", i, object.rank);
    if (object.place != 0) findings->add("object {} of a local plan has a place", i);
  }
}

// Of a local plan: pieces are listed once, rank_local entries are the rank's own.
void check_local_catalog(const LocalView& view, bool kept, Findings* findings) {
  std::vector<uint32_t> pieces;
  for (size_t t = 0; t < view.catalog.tensors.size() && !findings->full(); ++t) {
    const TensorRecord& tensor = view.catalog.tensors[t];
    if (tensor.rank >= 0 && tensor.rank != view.rank)
      findings->add("tensor {} belongs to rank {}", t, tensor.rank);
    check_pieces(view.catalog, t, &pieces, findings);
  }
  check_chunk_numbers(view.catalog, kept, findings);
  check_local_objects(view, findings);
}

void check_order(std::span<const uint32_t> order, size_t items, Findings* findings) {
  if (order.empty()) return;
  std::vector<bool> listed(items, false);
  for (const uint32_t box : order) {
    if (box >= items || listed[box])
      return findings->add("the order lists box {} of {} twice or in vain", box, items);
    listed[box] = true;
  }
  if (order.size() != items) findings->add("the order lists {} of {} boxes", order.size(), items);
}

void check_attributes(const ListingView& listing, size_t entries, Findings* findings) {
  if (listing.attribute_ends.empty()) return;
  if (listing.attribute_ends.size() != entries) {
    return findings->add("{} attributes for {} entries", listing.attribute_ends.size(), entries);
  }
  if (!std::ranges::is_sorted(listing.attribute_ends) ||
      listing.attribute_ends.back() != listing.attributes.size()) {
    findings->add("the attributes leave their {} bytes", listing.attributes.size());
  }
}

}  // namespace

void check_rank(int32_t rank, int32_t world_size, Findings* findings) {
  if (world_size < 1 || world_size > kMaxWorldSize || rank < 0 || rank >= world_size) {
    findings->add("rank {} of {} is no position", rank, world_size);
  }
}

void check_listing(const ListingView& listing, const CatalogView& catalog, Findings* findings) {
  const std::span<const uint32_t> begins = listing.object_begins;
  if (!begins.empty()) {
    if (begins.size() != catalog.objects.size()) {
      findings->add("{} places for {} objects", begins.size(), catalog.objects.size());
    } else if (!std::ranges::is_sorted(begins) || begins.back() > catalog.tensors.size()) {
      findings->add("the places of objects among {} tensors do not ascend", catalog.tensors.size());
    }
  }
  if (!listing.secondary.empty() && listing.secondary.size() != catalog.boxes.size()) {
    findings->add("{} chunks have {} marks", catalog.boxes.size(), listing.secondary.size());
  }
  if (std::ranges::any_of(listing.secondary, [](uint8_t mark) { return mark > 1; }))
    findings->add("a mark of a chunk is neither 0 nor 1");
  check_order(listing.order, catalog.boxes.size() + catalog.objects.size(), findings);
  check_attributes(listing, catalog.tensors.size() + catalog.objects.size(), findings);
}

std::vector<std::string> local_view_findings(const LocalView& view, bool kept, size_t limit,
                                             bool table_is_known) {
  Findings findings(limit);
  // World size 0: not known when it was described.
  check_rank(view.rank, view.world_size == 0 ? kMaxWorldSize : view.world_size, &findings);
  if (view.options_digest != options_text_digest(view.options_text))
    findings.add("the options have another digest");
  if (!is_valid_utf8(view.options_text)) findings.add("the options are not UTF-8");
  const CatalogView& catalog = view.catalog;
  if (!view.tensor_digests.empty() && view.tensor_digests.size() != catalog.tensors.size()) {
    findings.add("{} tensor digests for {} tensors", view.tensor_digests.size(),
                 catalog.tensors.size());
  }
  if (!view.object_digests.empty() && view.object_digests.size() != catalog.objects.size()) {
    findings.add("{} object digests for {} objects", view.object_digests.size(),
                 catalog.objects.size());
  }
  if (findings.full()) return findings.take();
  std::vector<std::string> of_catalog = view_findings(catalog, findings.room(), table_is_known);
  const bool sound = of_catalog.empty();
  findings.add_all(std::move(of_catalog));
  if (!sound) return findings.take();
  check_local_catalog(view, kept, &findings);
  check_listing(view.listing, catalog, &findings);
  return findings.take();
}

std::vector<std::string> local_save_findings(const LocalSavePlan& plan, size_t limit) {
  return local_view_findings(view_of(plan), plan.kept, limit, /*table_is_known=*/false);
}

}  // namespace shardwright::plan::internal
