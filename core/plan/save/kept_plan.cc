// SPDX-License-Identifier: Apache-2.0
//
// What is left of a local plan after a merge: its own entries and boxes, in its own order.
#include <algorithm>
#include <bit>

#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"
#include "core/plan/tensor_appender_internal.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan::internal {
namespace {

// The entries of a description that are kept, all of them as boxes.
class LeftEntries {
 public:
  explicit LeftEntries(const Description& from)
      : from_(from), texts_(from.catalog.texts.size(), 0) {}

  Description run(const std::vector<bool>& kept) {
    const Catalog& catalog = from_.catalog;
    to_.options_digest = from_.options_digest;
    to_.options_text = from_.options_text;
    to_.catalog.texts.reserve(catalog.texts.size(), catalog.texts.blob().size());
    for (size_t t = 0; t < catalog.tensors.size(); ++t) {
      if (kept[t]) add_tensor(t);
    }
    for (size_t i = 0; i < catalog.objects.size(); ++i) {
      if (kept[catalog.tensors.size() + i]) add_object(i);
    }
    to_.forms.assign(to_.catalog.tensors.size(), uint32_t{kBoxes});
    return std::move(to_);
  }

 private:
  // The text among those that are left. Records that share a text go on sharing it, so that no
  // column of a kept plan is larger than that of the rank's own.
  TextId text(TextId from) {
    if (texts_[from] == 0) texts_[from] = to_.catalog.texts.append(from_.catalog.texts.at(from));
    return texts_[from];
  }

  void add_tensor(size_t t) {
    TensorRecord record = from_.catalog.tensors[t];
    const std::span<const int64_t> shape = from_.catalog.shape(t);
    record.name = text(record.name);
    record.path = text(record.path);
    record.shape_begin = to_.catalog.shapes.size();
    to_.catalog.shapes.insert(to_.catalog.shapes.end(), shape.begin(), shape.end());
    to_.catalog.tensors.push_back(record);
  }

  void add_object(size_t i) {
    ObjectRecord record = from_.catalog.objects[i];
    record.name = text(record.name);
    record.path = text(record.path);
    record.content_type = text(record.content_type);
    to_.catalog.objects.push_back(record);
    if (!from_.object_digests.empty()) to_.object_digests.push_back(from_.object_digests[i]);
  }

  const Description& from_;
  Description to_;
  std::vector<TextId> texts_;  // of each text of the rank: its number here, 0 = not yet there
};

// What a rank adds to the entries that are left.
class LeftPart {
 public:
  LeftPart(const RankView& rank, const std::vector<bool>& kept, std::span<const uint32_t> numbers,
           LocalPart* part)
      : rank_(rank),
        catalog_(rank.description.catalog),
        kept_(kept),
        numbers_(numbers),
        to_(*part) {}

  void run() {
    clear();
    const ListingView& listing = rank_.part.listing;
    for (uint32_t t = 0; t < catalog_.tensors.size(); ++t) {
      if (kept_[t]) add_tensor(t);
    }
    const size_t tensors = catalog_.tensors.size();
    for (uint32_t i = 0; i < catalog_.objects.size(); ++i) {
      if (kept_[tensors + i]) add_object(i);
    }
    for (size_t entry = 0; entry < kept_.size() && !listing.attribute_ends.empty(); ++entry) {
      if (!kept_[entry]) continue;
      const std::string_view text = listing.attribute(entry);
      to_.listing.attributes.insert(to_.listing.attributes.end(), text.begin(), text.end());
      to_.listing.attribute_ends.push_back(to_.listing.attributes.size());
    }
    if (!listing.order.empty()) add_order();
  }

 private:
  // Keeps the capacity of columns.
  void clear() {
    to_.rank = static_cast<int32_t>(rank_.rank);
    to_.lists.clear();
    to_.boxes.clear();
    to_.more.clear();
    to_.object_sizes.clear();
    to_.digest_tensors.clear();
    to_.tensor_digests.clear();
    to_.listing.object_begins.clear();
    to_.listing.order.clear();
    to_.listing.secondary.clear();
    to_.listing.attributes.clear();
    to_.listing.attribute_ends.clear();
  }

  void add_tensor(uint32_t t) {
    BoxList list;
    list.begin = static_cast<uint32_t>(to_.boxes.size());
    list.more_begin = to_.more.size();
    if (rank_.description.is_ruled(t)) {
      add_ruled(t, &list);
    } else {
      add_list(rank_.list(t), &list);
    }
    list.count = static_cast<uint32_t>(to_.boxes.size()) - list.begin;
    add_digest(t);
    to_.lists.push_back(list);
  }

  void add_list(const BoxList& from, BoxList* list) {
    list->split_mask = from.split_mask;
    const auto split = static_cast<uint32_t>(std::popcount(from.split_mask));
    const uint64_t more = more_per_chunk(split);
    for (uint32_t b = 0; b < from.count; ++b) {
      const uint32_t item = from.begin + b;
      if (numbers_[item] == kNotKept) continue;
      add_box(rank_.part.boxes[item], numbers_[item]);
      const auto pairs = rank_.part.more.subspan(from.more_begin + b * more, more);
      to_.more.insert(to_.more.end(), pairs.begin(), pairs.end());
      if (!rank_.part.listing.secondary.empty())
        to_.listing.secondary.push_back(rank_.part.listing.secondary[item]);
    }
  }

  void add_ruled(uint32_t t, BoxList* list) {
    const uint32_t item = rank_.tensor_item(t);
    const Box box = rank_.box_of(item);
    const BoxReference only{&box, 0, 0};
    list->split_mask = split_mask_of(catalog_.shape(t), std::span(&only, 1));
    ChunkRecord record;
    pack_box(split_dims(catalog_.shape(t), list->split_mask), box, &record, &to_.more);
    add_box(record, numbers_[item]);
    if (!rank_.part.listing.secondary.empty()) to_.listing.secondary.push_back(0);
  }

  void add_box(ChunkRecord record, uint32_t number) {
    record.tensor = static_cast<uint32_t>(to_.lists.size());
    record.number = number;
    to_.boxes.push_back(record);
  }

  void add_digest(uint32_t t) {
    const std::vector<Digest128>& whole = rank_.description.tensor_digests;
    Digest128 digest{};
    if (!whole.empty()) digest = whole[t];
    const std::span<const uint32_t> tensors = rank_.part.digest_tensors;
    const auto own = std::ranges::lower_bound(tensors, t);
    if (own != tensors.end() && *own == t)
      digest = rank_.part.tensor_digests[static_cast<size_t>(own - tensors.begin())];
    if (digest == Digest128{}) return;
    to_.digest_tensors.push_back(static_cast<uint32_t>(to_.lists.size()));
    to_.tensor_digests.push_back(digest);
  }

  void add_object(uint32_t i) {
    const ListingView& listing = rank_.part.listing;
    if (catalog_.objects[i].kind == EntryKind::kRankLocal)
      to_.object_sizes.push_back(rank_.object_bytes(i));
    if (listing.object_begins.empty()) return;
    // They ascend.
    for (; tensors_seen_ < listing.object_begins[i]; ++tensors_seen_)
      tensors_kept_ += kept_[tensors_seen_] ? 1U : 0U;
    to_.listing.object_begins.push_back(tensors_kept_);
  }

  // The order without what is gone, in the numbers of the items that are left.
  void add_order() {
    std::vector<uint32_t> left;  // of each item: its number now, or kNotKept
    uint32_t next = 0;
    for_each_item(rank_, [&](uint32_t item) {
      left.push_back(numbers_[item] == kNotKept ? kNotKept : next++);
    });
    for (const uint32_t item : rank_.part.listing.order) {
      if (left[item] != kNotKept) to_.listing.order.push_back(left[item]);
    }
  }

  const RankView& rank_;
  const Catalog& catalog_;
  const std::vector<bool>& kept_;
  std::span<const uint32_t> numbers_;
  LocalPart& to_;
  uint32_t tensors_seen_ = 0;
  uint32_t tensors_kept_ = 0;
};

}  // namespace

KeptPlans::KeptPlans(const RankPlans& ranks, const NumberedChunks& numbered)
    : ranks_(ranks), numbered_(numbered), left_(ranks.descriptions.size()) {}

uint64_t KeptPlans::wire_bytes(uint32_t rank) const {
  const RankView view = ranks_.of(rank);
  const size_t tensors = view.description.forms.size();
  uint64_t bytes = description_wire_bytes(view.description) + part_wire_bytes(view.part);
  bytes += tensors * (sizeof(uint32_t) + sizeof(BoxList) + sizeof(uint32_t) + sizeof(Digest128));
  if (!view.numbers.has_ruled) return bytes;
  return bytes + tensors * (sizeof(ChunkRecord) + 1) +
         view.description.catalog.shapes.size() * sizeof(ExtentPair);
}

std::vector<bool> KeptPlans::kept_entries(const RankView& rank,
                                          std::span<const uint32_t> numbers) const {
  const size_t tensors = rank.description.forms.size();
  const size_t objects = rank.description.catalog.objects.size();
  std::vector<bool> kept(tensors + objects, false);
  for (uint32_t t = 0; t < tensors; ++t) {
    if (rank.description.is_ruled(t)) {
      kept[t] = numbers[rank.tensor_item(t)] != kNotKept;
    } else if (rank.description.forms[t] == kBoxes) {
      const BoxList& list = rank.list(t);
      const auto own = numbers.subspan(list.begin, list.count);
      kept[t] = std::ranges::any_of(own, [](uint32_t number) { return number != kNotKept; });
    }
  }
  for (uint32_t i = 0; i < objects; ++i)
    kept[tensors + i] = numbers[rank.object_item(i)] != kNotKept;
  return kept;
}

Status KeptPlans::describe(uint32_t description, const std::vector<bool>& entries,
                           Left* left) const {
  const Description made = LeftEntries(ranks_.descriptions[description]).run(entries);
  SHW_ASSIGN_OR_RETURN(left->bytes, encode(made));
  left->digest = content_digest(left->bytes);
  left->entries = entries;
  return {};
}

Result<std::span<const std::byte>> KeptPlans::of(uint32_t rank) {
  const RankView view = ranks_.of(rank);
  const uint64_t begin = numbered_.item_begins[rank];
  const auto numbers =
      std::span(numbered_.numbers).subspan(begin, numbered_.item_begins[rank + 1] - begin);
  const std::vector<bool> entries = kept_entries(view, numbers);
  Left& left = left_[ranks_.description_of_rank[rank]];
  if (left.bytes.empty() || left.entries != entries)
    SHW_RETURN_IF_ERROR(describe(ranks_.description_of_rank[rank], entries, &left));
  LeftPart(view, entries, numbers, &part_).run();
  part_.description_digest = left.digest;
  part_.world_size = static_cast<int32_t>(ranks_.rank_count());
  return encoder_.encode(left.bytes, part_, PlanKind::kKeptSave);
}

}  // namespace shardwright::plan::internal
