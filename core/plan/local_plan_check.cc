// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of a description and of a part must mean.
#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/findings_internal.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/local_plan.h"
#include "core/plan/options_text.h"
#include "core/plan/save_plan.h"

namespace shardwright::plan {
namespace {

using internal::Findings;

class DescriptionCheck {
 public:
  DescriptionCheck(const Description& description, size_t limit)
      : description_(description), catalog_(description.catalog), findings_(limit) {}

  std::vector<std::string> run() {
    if (description_.options_digest != options_text_digest(description_.options_text))
      findings_.add("the options have another digest");
    if (!is_valid_utf8(description_.options_text)) findings_.add("the options are not UTF-8");
    const size_t tensors = catalog_.tensors.size();
    if (description_.forms.size() != tensors)
      findings_.add("{} forms for {} tensors", description_.forms.size(), tensors);
    check_count("tensor", description_.tensor_digests, tensors);
    check_count("object", description_.object_digests, catalog_.objects.size());
    check_layouts();
    if (!findings_.full()) {
      findings_.add_all(catalog_findings(catalog_, findings_.room(), kMaxDescribedObjectBytes));
    }
    if (findings_.empty()) check_entries();
    return findings_.take();
  }

 private:
  void check_count(std::string_view what, const std::vector<Digest128>& column, size_t expected) {
    if (!column.empty() && column.size() != expected)
      findings_.add("{} {} digests for {} {}s", column.size(), what, expected, what);
  }

  // Extents and dims of a layout; the dimension count of a tensor comes later.
  bool check_layouts() {
    uint32_t begin = 0;
    for (size_t i = 0; i < description_.layout_ends.size(); ++i) {
      const uint32_t end = description_.layout_ends[i];
      if (end <= begin || end - begin > kMaxShardAxes || end > description_.axes.size()) {
        return findings_.add("layout {} has the axes {} to {} of {}", i, begin, end,
                             description_.axes.size());
      }
      int64_t columns = 1;
      for (const ShardAxis& axis : description_.layout(i)) {
        if (axis.dim < 0 || axis.dim >= kMaxTensorRank || axis.extent < 2 ||
            axis.extent > kMaxWorldSize || axis.stride < 1 || axis.phase < 0 ||
            axis.phase >= axis.extent) {
          return findings_.add("layout {} cuts dimension {} into {} by stride {}, phase {}", i,
                               axis.dim, axis.extent, axis.stride, axis.phase);
        }
        columns *= axis.extent;
        if (columns > kMaxWorldSize)
          return findings_.add("layout {} has more than {} parts", i, kMaxWorldSize);
      }
      begin = end;
    }
    if (begin == description_.axes.size()) return true;
    return findings_.add("the layouts use {} of {} axes", begin, description_.axes.size());
  }

  bool check_form(size_t t) {
    const uint32_t form = description_.forms[t];
    const TensorRecord& tensor = catalog_.tensors[t];
    if (form >= kFirstLayout && form - kFirstLayout >= description_.layout_ends.size()) {
      return findings_.add("tensor {} has layout {} of {}", t, form - kFirstLayout,
                           description_.layout_ends.size());
    }
    if (form >= kFirstLayout) {
      for (const ShardAxis& axis : description_.layout(form - kFirstLayout)) {
        if (static_cast<uint32_t>(axis.dim) >= tensor.dimension_count)
          findings_.add("the layout of tensor {} cuts dimension {}", t, axis.dim);
      }
    }
    if (tensor.chunk_count != 0) findings_.add("tensor {} has chunks", t);
    if (tensor.kind == EntryKind::kRankLocal &&
        (tensor.rank != 0 || (form != kWhole && form != kBoxes)))
      findings_.add("rank_local tensor {} is of form {}", t, form);
    return true;
  }

  void check_entries() {
    const std::vector<Digest128>& digests = description_.tensor_digests;
    for (size_t t = 0; t < catalog_.tensors.size() && !findings_.full(); ++t) {
      check_form(t);
      if (!digests.empty() && digests[t] != Digest128{} && description_.forms[t] != kWhole)
        findings_.add("tensor {} has a digest but is not whole", t);
    }
    for (size_t i = 0; i < catalog_.objects.size() && !findings_.full(); ++i) {
      const ObjectRecord& object = catalog_.objects[i];
      const bool local = object.kind == EntryKind::kRankLocal;
      if (object.place != 0 || (local && (object.rank != 0 || object.size_bytes != 0)))
        findings_.add("object {} of a description has a place or a size", i);
    }
  }

  const Description& description_;
  const Catalog& catalog_;
  Findings findings_;
};

class PartCheck {
 public:
  PartCheck(const PartView& part, size_t limit) : part_(part), findings_(limit) {}

  std::vector<std::string> run(const Description* description) {
    check_alone();
    if (description != nullptr && findings_.empty()) {
      if (check_lists(*description)) check_against(*description);
    }
    return findings_.take();
  }

 private:
  void check_alone() {
    // World size 0: not known when it was described.
    internal::check_rank(part_.rank, part_.world_size == 0 ? kMaxWorldSize : part_.world_size,
                         &findings_);
    if (part_.digest_tensors.size() != part_.tensor_digests.size()) {
      findings_.add("{} digests of {} tensors", part_.tensor_digests.size(),
                    part_.digest_tensors.size());
    }
    for (size_t i = 1; i < part_.digest_tensors.size() && !findings_.full(); ++i) {
      if (part_.digest_tensors[i] <= part_.digest_tensors[i - 1])
        findings_.add("the digest of tensor {} is out of order", part_.digest_tensors[i]);
    }
    for (size_t i = 0; i < part_.object_sizes.size() && !findings_.full(); ++i) {
      if (part_.object_sizes[i] > kMaxDescribedObjectBytes)
        findings_.add("rank_local object {} has {} bytes", i, part_.object_sizes[i]);
    }
  }

  // The lists of a part follow each other through its columns.
  bool check_lists(const Description& description) {
    const Catalog& catalog = description.catalog;
    size_t number = 0;
    uint64_t boxes = 0;
    uint64_t more = 0;
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      if (description.forms[t] != kBoxes) continue;
      if (number == part_.lists.size()) break;
      const BoxList& list = part_.lists[number++];
      const uint32_t dimensions = catalog.tensors[t].dimension_count;
      const bool masked = dimensions == 64 || list.split_mask >> dimensions == 0;
      const auto split = static_cast<uint32_t>(std::popcount(list.split_mask));
      if (list.begin != boxes || list.more_begin != more || !masked) {
        return findings_.add("the boxes of rank {} of tensor '{}' do not follow those before them",
                             part_.rank, escape_text(catalog.tensor_name(t)));
      }
      boxes += list.count;
      more += list.count * internal::more_per_chunk(split);
    }
    const auto expected = std::ranges::count(description.forms, uint32_t{kBoxes});
    const auto own =
        std::ranges::count(catalog.objects, EntryKind::kRankLocal, &ObjectRecord::kind);
    if (std::cmp_equal(expected, part_.lists.size()) &&
        std::cmp_equal(own, part_.object_sizes.size()) && boxes == part_.boxes.size() &&
        more == part_.more.size())
      return true;
    return findings_.add(
        "rank {} gives {} lists of {} boxes with {} further pairs and {} object sizes; its "
        "description and its lists have {}, {}, {} and {}",
        part_.rank, part_.lists.size(), part_.boxes.size(), part_.more.size(),
        part_.object_sizes.size(), expected, boxes, more, own);
  }

  void check_against(const Description& description) {
    const Catalog& catalog = description.catalog;
    size_t number = 0;
    size_t ruled = 0;
    for (size_t t = 0; t < catalog.tensors.size() && !findings_.full(); ++t) {
      if (description.forms[t] == kBoxes) check_boxes(catalog, t, part_.lists[number++]);
      ruled += description.is_ruled(t) ? 1U : 0U;
      if (part_.world_size == 0 && description.forms[t] >= kFirstLayout)
        findings_.add("tensor {} has a layout, but the number of ranks is not known", t);
    }
    for (const uint32_t tensor : part_.digest_tensors) {
      if (tensor >= catalog.tensors.size() || description.forms[tensor] == kWhole) {
        findings_.add("rank {} gives a digest of tensor {}, which is whole or not there",
                      part_.rank, tensor);
      }
    }
    const size_t objects = catalog.objects.size();
    internal::check_listing(
        part_.listing,
        {catalog.tensors.size(), objects, part_.boxes.size(), part_.boxes.size() + objects + ruled},
        &findings_);
  }

  // Boxes of one tensor: each inside it, and no piece twice.
  void check_boxes(const Catalog& catalog, size_t tensor, const BoxList& list) {
    const internal::SplitDims split = internal::split_dims(catalog.shape(tensor), list.split_mask);
    bool ascending = true;
    for (uint32_t b = 0; b < list.count; ++b) {
      const ChunkRecord& box = part_.boxes[list.begin + b];
      bool sound = box.tensor == tensor && box.place != kObjectPiece &&
                   internal::only_split_pairs(box, split);
      for (uint32_t k = 0; k < split.count && sound; ++k)
        sound = internal::is_inside(internal::list_pair(part_, list, b, k), split.extents[k]);
      ascending = ascending && (b == 0 || box.place > part_.boxes[list.begin + b - 1].place);
      if (sound) continue;
      findings_.add("box {} of tensor '{}' of rank {} leaves its shape or has a wrong piece", b,
                    escape_text(catalog.tensor_name(tensor)), part_.rank);
      return;
    }
    if (!ascending) check_pieces(catalog, tensor, list);
  }

  void check_pieces(const Catalog& catalog, size_t tensor, const BoxList& list) {
    pieces_.clear();
    for (const ChunkRecord& box : part_.boxes.subspan(list.begin, list.count))
      pieces_.push_back(box.place);
    std::ranges::sort(pieces_);
    const auto doubled = std::ranges::adjacent_find(pieces_);
    if (doubled == pieces_.end()) return;
    findings_.add("rank {} gives piece {} of tensor '{}' twice", part_.rank, *doubled,
                  escape_text(catalog.tensor_name(tensor)));
  }

  const PartView& part_;
  Findings findings_;
  std::vector<uint32_t> pieces_;  // scratch
};

void check_order(std::span<const uint32_t> order, size_t items, Findings* findings) {
  if (order.empty()) return;
  std::vector<bool> listed(items, false);
  for (const uint32_t item : order) {
    if (item >= items || listed[item]) {
      findings->add("the order lists item {} of {} twice or in vain", item, items);
      return;
    }
    listed[item] = true;
  }
  if (order.size() != items) findings->add("the order lists {} of {} items", order.size(), items);
}

void check_attributes(const ListingView& listing, size_t entries, Findings* findings) {
  const std::span<const uint64_t> ends = listing.attribute_ends;
  if (ends.empty() && listing.attributes.empty()) return;
  if (ends.size() != entries) {
    findings->add("{} attributes for {} entries", ends.size(), entries);
  } else if (!std::ranges::is_sorted(ends) || ends.empty() ||
             ends.back() != listing.attributes.size()) {
    findings->add("the attributes leave their {} bytes", listing.attributes.size());
  }
}

}  // namespace

void internal::check_rank(int32_t rank, int32_t world_size, Findings* findings) {
  if (world_size < 1 || world_size > kMaxWorldSize || rank < 0 || rank >= world_size)
    findings->add("rank {} of {} is no position", rank, world_size);
}

void internal::check_listing(const ListingView& listing, const ListedCounts& counts,
                             Findings* findings) {
  const std::span<const uint32_t> begins = listing.object_begins;
  if (!begins.empty() && begins.size() != counts.objects) {
    findings->add("{} places for {} objects", begins.size(), counts.objects);
  } else if (!begins.empty() &&
             (!std::ranges::is_sorted(begins) || begins.back() > counts.tensors)) {
    findings->add("the places of objects among {} tensors do not ascend", counts.tensors);
  }
  if (!listing.secondary.empty() && listing.secondary.size() != counts.boxes)
    findings->add("{} boxes have {} marks", counts.boxes, listing.secondary.size());
  if (std::ranges::any_of(listing.secondary, [](uint8_t mark) { return mark > 1; }))
    findings->add("a mark of a box is neither 0 nor 1");
  check_order(listing.order, counts.items, findings);
  check_attributes(listing, counts.tensors + counts.objects, findings);
}

std::vector<std::string> description_findings(const Description& description, size_t limit) {
  return DescriptionCheck(description, limit).run();
}

std::vector<std::string> part_findings(const PartView& part, const Description* description,
                                       size_t limit) {
  return PartCheck(part, limit).run(description);
}

}  // namespace shardwright::plan
