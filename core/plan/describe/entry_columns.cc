// SPDX-License-Identifier: Apache-2.0
//
// One pass over tensors and objects in the order in which the host listed them.
#include "core/plan/describe/entry_columns.h"

#include <algorithm>

#include "core/plan/box_list_internal.h"

namespace shardwright::plan {
namespace {

using internal::SplitDims;

int32_t dtype_number(DType dtype) {
  const DLPackType type = dtype_to_dlpack(dtype);
  return type.code + 256 * type.bits;
}

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
    const SplitDims split = internal::split_dims(catalog, t);
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      const auto pair_at = [&](uint32_t k) { return internal::chunk_pair(catalog, record, c, k); };
      add_box(catalog.shape(t), split, pair_at, internal::chunk_place(catalog, record, c));
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
      add_list(rank, t);
    } else if (plan.description.is_ruled(t)) {
      const Box box = rank.box_of(rank.tensor_item(t));
      const SplitDims split = internal::split_dims(catalog.shape(t), ~uint64_t{0});
      const auto pair_at = [&](uint32_t k) { return ExtentPair{box.offsets[k], box.sizes[k]}; };
      if (!box_is_empty(box)) add_box(catalog.shape(t), split, pair_at, 0);
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

void EntryColumns::add_list(const RankView& rank, uint32_t tensor) {
  const BoxList& list = rank.list(tensor);
  const std::span<const int64_t> shape = rank.description.catalog.shape(tensor);
  const SplitDims split = internal::split_dims(shape, list.split_mask);
  for (uint32_t b = 0; b < list.count; ++b) {
    const ChunkRecord& record = rank.part.boxes[list.begin + b];
    const auto pair_at = [&](uint32_t k) { return internal::list_pair(rank.part, list, b, k); };
    add_box(shape, split, pair_at, record.place);
  }
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
      dtypes_.push_back(dtype_number(record.dtype));
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

template <typename PairAt>
void EntryColumns::add_box(std::span<const int64_t> shape, const SplitDims& split,
                           const PairAt& pair_at, uint64_t number) {
  const size_t value = box_offsets_.size();
  box_offsets_.resize(value + shape.size(), 0);
  box_sizes_.insert(box_sizes_.end(), shape.begin(), shape.end());
  for (uint32_t k = 0; k < split.count; ++k) {
    const ExtentPair pair = pair_at(k);
    box_offsets_[value + split.dims[k]] = pair.offset;
    box_sizes_[value + split.dims[k]] = pair.size;
  }
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
