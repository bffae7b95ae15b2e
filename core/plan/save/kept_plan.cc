// SPDX-License-Identifier: Apache-2.0
//
// What is left of a rank's description after a merge: its own entries and boxes, in its own order.
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

class KeptPlan {
 public:
  KeptPlan(const LocalView& view, std::span<const uint32_t> numbers, LocalSavePlan* plan)
      : view_(view),
        from_(view.catalog),
        numbers_(numbers),
        plan_(*plan),
        to_(plan->catalog),
        texts_(view.catalog.texts.size(), 0) {}

  void run() {
    clear();
    plan_.kept = true;
    plan_.rank = view_.rank;
    plan_.world_size = view_.world_size;
    plan_.options_digest = view_.options_digest;
    plan_.options_text = view_.options_text;
    for (uint32_t t = 0; t < from_.tensors.size(); ++t) add_tensor(t);
    for (uint32_t i = 0; i < from_.objects.size(); ++i) add_object(i);
    if (!view_.listing.order.empty()) add_order();
  }

 private:
  void clear() {
    to_.texts = TextColumn();
    to_.texts.reserve(from_.texts.size(), from_.texts.blob().size());
    to_.shapes.clear();
    to_.tensors.clear();
    to_.boxes.clear();
    to_.more.clear();
    to_.objects.clear();
    plan_.tensor_digests.clear();
    plan_.object_digests.clear();
    Listing& listing = plan_.listing;
    listing.object_begins.clear();
    listing.order.clear();
    listing.secondary.clear();
    listing.attributes.clear();
    listing.attribute_ends.clear();
  }

  // The text in the kept plan. Records that share a text go on sharing it, so that no column of the
  // kept plan is larger than that of the rank's own.
  TextId text(TextId from) {
    if (texts_[from] == 0) texts_[from] = to_.texts.append(from_.texts.at(from));
    return texts_[from];
  }

  void add_tensor(uint32_t t) {
    const TensorRecord& from = from_.tensors[t];
    const size_t chunk_begin = to_.boxes.size();
    const size_t more_begin = to_.more.size();
    for (uint64_t c = from.chunk_begin; c < from.chunk_begin + from.chunk_count; ++c) {
      if (numbers_[c] == kNotKept) continue;
      ChunkRecord record = from_.boxes[c];
      record.tensor = static_cast<uint32_t>(to_.tensors.size());
      record.number = numbers_[c];
      to_.boxes.push_back(record);
      for (uint32_t k = 2; k < split_count(from); ++k)
        to_.more.push_back(chunk_pair(from_, from, c, k));
      if (!view_.listing.secondary.empty())
        plan_.listing.secondary.push_back(view_.listing.secondary[c]);
    }
    if (to_.boxes.size() == chunk_begin) return;
    TensorRecord record = from;
    if (record.rank >= 0) record.rank = view_.rank;
    record.name = text(from.name);
    record.path = text(from.path);
    record.shape_begin = to_.shapes.size();
    record.chunk_begin = record.box_begin = chunk_begin;
    record.chunk_count = to_.boxes.size() - chunk_begin;
    record.more_begin = more_begin;
    const std::span<const int64_t> shape = from_.shape(t);
    to_.shapes.insert(to_.shapes.end(), shape.begin(), shape.end());
    to_.tensors.push_back(record);
    if (!view_.tensor_digests.empty()) plan_.tensor_digests.push_back(view_.tensor_digests[t]);
    add_attribute(t);
  }

  void add_object(uint32_t i) {
    if (numbers_[from_.boxes.size() + i] == kNotKept) return;
    ObjectRecord record = from_.objects[i];
    if (record.rank >= 0) record.rank = view_.rank;
    record.name = text(record.name);
    record.path = text(record.path);
    record.content_type = text(record.content_type);
    to_.objects.push_back(record);
    if (!view_.object_digests.empty()) plan_.object_digests.push_back(view_.object_digests[i]);
    add_attribute(from_.tensors.size() + i);
    if (!view_.listing.object_begins.empty())
      plan_.listing.object_begins.push_back(kept_tensors_before(view_.listing.object_begins[i]));
  }

  // How many of the first tensors have something that is kept. Objects come by ascending count.
  uint32_t kept_tensors_before(uint32_t count) {
    for (; tensors_seen_ < count; ++tensors_seen_) {
      const TensorRecord& tensor = from_.tensors[tensors_seen_];
      bool kept = false;
      for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c)
        kept |= numbers_[c] != kNotKept;
      tensors_kept_ += kept ? 1 : 0;
    }
    return tensors_kept_;
  }

  void add_attribute(size_t entry) {
    if (view_.listing.attribute_ends.empty()) return;
    const std::string_view text = view_.listing.attribute(entry);
    plan_.listing.attributes.insert(plan_.listing.attributes.end(), text.begin(), text.end());
    plan_.listing.attribute_ends.push_back(plan_.listing.attributes.size());
  }

  // The order without what is gone, in the numbers of the boxes that are left.
  void add_order() {
    std::vector<uint32_t> left;  // of each box: its number now, or kNotKept
    uint32_t next = 0;
    for_each_item(view_, [&](uint32_t item) {
      left.push_back(numbers_[item] == kNotKept ? kNotKept : next++);
    });
    for (const uint32_t box : view_.listing.order) {
      if (left[box] != kNotKept) plan_.listing.order.push_back(left[box]);
    }
  }

  const LocalView& view_;
  const CatalogView& from_;
  std::span<const uint32_t> numbers_;
  LocalSavePlan& plan_;
  Catalog& to_;
  std::vector<TextId> texts_;  // of each text of the rank: its number here, 0 = not yet there
  uint32_t tensors_seen_ = 0;
  uint32_t tensors_kept_ = 0;
};

}  // namespace

void make_kept_plan(const LocalView& view, std::span<const uint32_t> numbers, LocalSavePlan* plan) {
  KeptPlan(view, numbers, plan).run();
}

}  // namespace shardwright::plan::internal
