// SPDX-License-Identifier: Apache-2.0
//
// One pass over tensors and objects in the order in which the host listed them.
#include "core/plan/describe/entry_columns.h"

#include <algorithm>

#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan {
namespace {

// The content digest of a tensor of the rank.
Digest128 digest_of(const LocalPlan& plan, uint32_t tensor) {
  const std::vector<uint32_t>& own = plan.part.digest_tensors;
  const auto found = std::ranges::lower_bound(own, tensor);
  if (found != own.end() && *found == tensor)
    return plan.part.tensor_digests[static_cast<size_t>(found - own.begin())];
  const std::vector<Digest128>& whole = plan.description.tensor_digests;
  return whole.empty() ? Digest128{} : whole[tensor];
}

}  // namespace

EntryColumns::EntryColumns(const GlobalSavePlan& plan) {
  const Catalog& catalog = plan.catalog;
  const auto add_tensor = [&](uint32_t t) {
    const TensorRecord& record = catalog.tensors[t];
    const internal::SplitDims split = internal::split_dims(catalog, t);
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      add_box(internal::chunk_box(catalog, t, split, c), internal::chunk_place(catalog, record, c));
    }
  };
  const auto add_object = [&](uint32_t i) {
    numbers_.push_back(catalog.objects[i].place);
    object_sizes_.push_back(catalog.objects[i].size_bytes);
  };
  add_all(catalog, view_of(plan.listing), add_tensor, add_object);
}

EntryColumns::EntryColumns(const LocalPlan& plan) {
  const EntryNumbers numbers(plan.description);
  const PartView part = view_of(plan.part);
  const RankView rank{plan.description, numbers, part, static_cast<uint32_t>(part.rank)};
  const Catalog& catalog = plan.description.catalog;
  const std::vector<Digest128>& objects = plan.description.object_digests;
  const bool has_digests =
      !objects.empty() || !plan.description.tensor_digests.empty() || !part.digest_tensors.empty();
  const auto add_tensor = [&](uint32_t t) {
    if (has_digests) digests_.push_back(digest_of(plan, t));
    if (plan.description.forms[t] == kBoxes) {
      const BoxList& list = rank.list(t);
      for (uint32_t b = list.begin; b < list.begin + list.count; ++b)
        add_box(rank.box_of(b), part.boxes[b].place);
    } else if (plan.description.is_ruled(t)) {
      const Box box = rank.box_of(rank.tensor_item(t));
      if (!box_is_empty(box)) add_box(box, 0);
    }
  };
  const auto add_object = [&](uint32_t i) {
    if (has_digests) digests_.push_back(objects.empty() ? Digest128{} : objects[i]);
    numbers_.push_back(0);
    object_sizes_.push_back(rank.object_bytes(i));
  };
  add_all(catalog, part.listing, add_tensor, add_object);
  if (part.listing.secondary.empty()) return;
  for_each_item(rank, [&](uint32_t item) {
    secondary_.push_back(item < part.boxes.size() ? part.listing.secondary[item] : 0);
  });
}

template <typename AddTensor, typename AddObject>
void EntryColumns::add_all(const Catalog& catalog, const ListingView& listing,
                           const AddTensor& add_tensor, const AddObject& add_object) {
  const auto tensors = static_cast<uint32_t>(catalog.tensors.size());
  uint32_t tensor = 0;
  const auto add_tensors_until = [&](uint32_t end) {
    for (; tensor < end; ++tensor) {
      const TensorRecord& record = catalog.tensors[tensor];
      const std::span<const int64_t> shape = catalog.shape(tensor);
      dtypes_.push_back(static_cast<int32_t>(record.dtype));
      shapes_.insert(shapes_.end(), shape.begin(), shape.end());
      object_sizes_.push_back(0);
      add_tensor(tensor);
      end_entry(catalog.texts.at(record.name), catalog.texts.at(record.path), record.kind,
                listing.attribute(tensor));
    }
  };
  for (uint32_t i = 0; i < catalog.objects.size(); ++i) {
    add_tensors_until(listing.object_begins.empty() ? tensors : listing.object_begins[i]);
    const ObjectRecord& record = catalog.objects[i];
    dtypes_.push_back(0);
    add_object(i);
    end_entry(catalog.texts.at(record.name), catalog.texts.at(record.path), record.kind,
              listing.attribute(tensors + i));
  }
  add_tensors_until(tensors);
  order_.assign(listing.order.begin(), listing.order.end());
}

void EntryColumns::end_entry(std::string_view name, std::string_view path, EntryKind kind,
                             std::string_view attribute) {
  const auto append = [](std::string_view text, std::vector<char>* blob,
                         std::vector<uint64_t>* offsets) {
    blob->insert(blob->end(), text.begin(), text.end());
    offsets->push_back(blob->size());
  };
  append(name, &names_, &name_offsets_);
  append(path, &paths_, &path_offsets_);
  append(attribute, &attributes_, &attribute_offsets_);
  kinds_.push_back(static_cast<int32_t>(kind));
  shape_offsets_.push_back(shapes_.size());
  box_ranges_.push_back(numbers_.size());
}

void EntryColumns::add_box(const Box& box, uint64_t number) {
  box_offsets_.insert(box_offsets_.end(), box.offsets.begin(), box.offsets.end());
  box_sizes_.insert(box_sizes_.end(), box.sizes.begin(), box.sizes.end());
  numbers_.push_back(number);
}

EntryArrays EntryColumns::arrays() const {
  EntryArrays arrays;
  arrays.count = dtypes_.size();
  arrays.names = {names_, name_offsets_};
  arrays.dtypes = dtypes_;
  arrays.kinds = kinds_;
  arrays.shapes = shapes_.data();
  arrays.shape_offsets = shape_offsets_;
  arrays.box_ranges = box_ranges_;
  arrays.box_offsets = box_offsets_.data();
  arrays.box_sizes = box_sizes_.data();
  arrays.numbers = numbers_.data();
  arrays.order = order_.empty() ? nullptr : order_.data();
  arrays.secondary = secondary_.empty() ? nullptr : secondary_.data();
  arrays.object_sizes = object_sizes_;
  arrays.paths = {paths_, path_offsets_};
  if (!attributes_.empty()) arrays.attributes = {attributes_, attribute_offsets_};
  arrays.digests = digests_;
  return arrays;
}

}  // namespace shardwright::plan
