// SPDX-License-Identifier: Apache-2.0
//
// Flat arrays to the columns of a catalog. One pass over the entries: the split dimensions of a
// tensor are found while its boxes are checked, then its records are written.
#include "core/plan/describe/describe_boxes.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/hash_index.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/digest.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan {
namespace {

constexpr uint64_t kMaxBoxes = std::numeric_limits<uint32_t>::max() - 1;

int32_t dtype_number(DType dtype) {
  const DLPackType type = dtype_to_dlpack(dtype);
  return type.code + 256 * type.bits;
}

// The same dtype comes many times in a row.
class DTypes {
 public:
  Result<DType> of(int32_t number) {
    if (number != number_) {
      if (number < 0 || number > 0xFFFF)
        return invalid_argument(fmt::format("dtype {} is no code + 256 x bits", number));
      SHW_ASSIGN_OR_RETURN(dtype_, dtype_from_dlpack(static_cast<uint8_t>(number & 0xFF),
                                                     static_cast<uint8_t>(number >> 8), 1));
      number_ = number;
    }
    return dtype_;
  }

 private:
  int32_t number_ = 0;  // 0 is no dtype of a tensor
  DType dtype_ = DType::kInvalid;
};

// Fills catalog and listing from the arrays.
class Describer {
 public:
  // local: places are numbers of pieces, rank_local entries belong to rank. Else places are ranks.
  Describer(const EntryArrays& entries, std::span<const KindPattern> patterns, bool local,
            int32_t rank)
      : in_(entries), patterns_(patterns), local_(local), rank_(rank) {}

  Status run(Catalog* catalog, Listing* listing) {
    catalog_ = catalog;
    listing_ = listing;
    SHW_RETURN_IF_ERROR(reserve());
    for (size_t i = 0; i < in_.count; ++i) {
      Status status = in_.dtypes[i] == 0 ? add_object(i) : add_tensor(i);
      if (!status.ok()) {
        return std::move(status)
            .with_detail("tensor", in_.names.at(i))
            .annotated(fmt::format("entries[{}] '{}'", i, escape_text(in_.names.at(i))));
      }
    }
    if (objects_between_ && !catalog->objects.empty()) listing->object_begins = object_begins_;
    add_attributes();
    return add_order();
  }

  // Digests of tensors and of objects; the arrays have them entry by entry.
  void digests(std::vector<Digest128>* tensors, std::vector<Digest128>* objects) const {
    const auto is_set = [](const Digest128& digest) { return digest != Digest128{}; };
    if (std::ranges::none_of(in_.digests, is_set)) return;
    for (size_t i = 0; i < in_.count; ++i)
      (in_.dtypes[i] == 0 ? objects : tensors)->push_back(in_.digests[i]);
  }

 private:
  Status reserve() {
    const uint64_t boxes = in_.box_ranges.empty() ? in_.count : in_.box_ranges[in_.count];
    if (in_.count > kMaxBoxes / 4 || boxes > kMaxBoxes) {
      return resource_exhausted(
          "entries", fmt::format("{} entries with {} boxes are too many", in_.count, boxes));
    }
    catalog_->texts.reserve(2 * in_.count, in_.names.blob.size() + in_.paths.blob.size());
    catalog_->tensors.reserve(in_.count);
    catalog_->boxes.reserve(boxes);
    if (!in_.shape_offsets.empty()) catalog_->shapes.reserve(in_.shape_offsets[in_.count]);
    names_.reserve(in_.count, [](size_t) { return uint64_t{0}; });
    return {};
  }

  Status add_texts(size_t i, TextId* name, TextId* path) {
    const std::string_view text = in_.names.at(i);
    const std::string_view nested = in_.paths.at(i);
    if (text.size() > kMaxNameBytes || !is_valid_utf8(text)) {
      return invalid_argument(
          fmt::format("the name is not UTF-8 of at most {} bytes", kMaxNameBytes));
    }
    if (nested.size() > kMaxPathTextBytes || !is_valid_utf8(nested)) {
      return invalid_argument(
          fmt::format("the path is not UTF-8 of at most {} bytes", kMaxPathTextBytes));
    }
    const uint64_t hash = hash_text(text);
    const auto same = [&](size_t other) { return in_.names.at(other) == text; };
    if (const auto found = names_.find(hash, same)) {
      return already_exists(fmt::format("entries {} and {} have the same name", *found, i));
    }
    names_.insert(hash, i);
    *name = catalog_->texts.append(text);
    *path = catalog_->texts.append(nested);
    return {};
  }

  // The first pattern that matches, else the entry's own kind, else AUTO.
  Result<EntryKind> kind_of(size_t i) const {
    for (const KindPattern& pattern : patterns_) {
      const bool fits = pattern.kind != EntryKind::kAuto &&
                        (in_.dtypes[i] != 0 || pattern.kind != EntryKind::kSharded);
      if (fits && glob_matches(pattern.glob, in_.names.at(i))) return pattern.kind;
    }
    if (in_.kinds.empty()) return EntryKind::kAuto;
    const int32_t kind = in_.kinds[i];
    if (kind < 0 || kind > static_cast<int32_t>(EntryKind::kRankLocal))
      return invalid_argument(fmt::format("there is no kind {}", kind));
    return static_cast<EntryKind>(kind);
  }

  // Owner of a rank_local entry.
  Result<int32_t> owner_of(EntryKind kind, uint64_t first_box, uint64_t boxes) const {
    if (kind != EntryKind::kRankLocal) return -1;
    if (local_) return rank_;
    if (boxes == 0) return invalid_argument("a rank_local entry without a box has no rank");
    SHW_ASSIGN_OR_RETURN(const uint32_t rank, place_of(first_box, 0));
    return static_cast<int32_t>(rank);
  }

  // Number of box `index` of its entry.
  Result<uint32_t> place_of(uint64_t box, uint64_t index) const {
    const uint64_t absent = local_ ? index : 0;
    const uint64_t number = in_.numbers == nullptr ? absent : in_.numbers[box];
    const uint64_t end = local_ ? kObjectPiece : static_cast<uint64_t>(kMaxWorldSize);
    if (number < end) return static_cast<uint32_t>(number);
    return invalid_argument(fmt::format("number {} of box {} is not below {}", number, box, end));
  }

  Status shape_of(size_t i, std::span<const int64_t>* shape) const {
    const uint64_t begin = in_.shape_offsets.empty() ? 0 : in_.shape_offsets[i];
    const uint64_t end = in_.shape_offsets.empty() ? 0 : in_.shape_offsets[i + 1];
    if (end - begin > static_cast<uint64_t>(kMaxTensorRank))
      return invalid_argument(
          fmt::format("{} dimensions are more than {}", end - begin, kMaxTensorRank));
    *shape = {in_.shapes + begin, end - begin};
    return {};
  }

  Status check_shape(DType dtype, std::span<const int64_t> shape) const {
    SHW_ASSIGN_OR_RETURN(const int64_t elements, checked_element_count(shape));
    return dtype_packed_bytes(dtype, elements).status();
  }

  Status add_tensor(size_t i) {
    const uint64_t first_box = box_;
    uint64_t boxes = 1;
    if (!in_.box_ranges.empty()) boxes = in_.box_ranges[i + 1] - in_.box_ranges[i];
    TensorRecord record;
    std::span<const int64_t> shape;
    SHW_RETURN_IF_ERROR(shape_of(i, &shape));
    SHW_ASSIGN_OR_RETURN(record.dtype, dtypes_.of(in_.dtypes[i]));
    SHW_RETURN_IF_ERROR(check_shape(record.dtype, shape));
    SHW_RETURN_IF_ERROR(add_texts(i, &record.name, &record.path));
    SHW_ASSIGN_OR_RETURN(record.kind, kind_of(i));
    SHW_ASSIGN_OR_RETURN(record.split_mask, check_boxes(shape, boxes));
    if (record.kind == EntryKind::kAuto) {
      const bool whole = boxes == 1 && record.split_mask == 0;
      record.kind = whole ? EntryKind::kReplicated : EntryKind::kSharded;
    }
    SHW_ASSIGN_OR_RETURN(record.rank, owner_of(record.kind, first_box, boxes));
    record.shape_begin = catalog_->shapes.size();
    record.dimension_count = static_cast<uint32_t>(shape.size());
    record.chunk_begin = record.box_begin = catalog_->boxes.size();
    record.chunk_count = boxes;
    record.more_begin = catalog_->more.size();
    catalog_->shapes.insert(catalog_->shapes.end(), shape.begin(), shape.end());
    SHW_RETURN_IF_ERROR(add_chunks(shape, record));
    catalog_->tensors.push_back(record);
    if (!catalog_->objects.empty()) objects_between_ = true;
    box_ += boxes;
    value_ += in_.box_ranges.empty() ? 0 : boxes * shape.size();
    return {};
  }

  // Split mask of the tensor's boxes, all of which lie inside it.
  Result<uint64_t> check_boxes(std::span<const int64_t> shape, uint64_t boxes) const {
    if (in_.box_ranges.empty()) return 0;
    uint64_t mask = 0;
    const size_t rank = shape.size();
    for (uint64_t b = 0; b < boxes; ++b) {
      const std::span<const int64_t> offsets(in_.box_offsets + value_ + b * rank, rank);
      const std::span<const int64_t> sizes(in_.box_sizes + value_ + b * rank, rank);
      for (size_t d = 0; d < rank; ++d) {
        if (offsets[d] < 0 || sizes[d] < 0 || offsets[d] > shape[d] ||
            sizes[d] > shape[d] - offsets[d]) {
          return check_box(offsets, sizes, shape);
        }
        if (sizes[d] != shape[d]) mask |= uint64_t{1} << d;
      }
    }
    return mask;
  }

  Status add_chunks(std::span<const int64_t> shape, const TensorRecord& tensor) {
    const internal::SplitDims split = internal::split_dims(shape, tensor.split_mask);
    const auto number = static_cast<uint32_t>(catalog_->tensors.size());
    for (uint64_t b = 0; b < tensor.chunk_count; ++b) {
      ChunkRecord record;
      record.tensor = number;
      SHW_ASSIGN_OR_RETURN(record.place, place_of(box_ + b, b));
      const uint64_t value = value_ + b * shape.size();
      const auto pair = [&](uint32_t k) -> ExtentPair {
        return {in_.box_offsets[value + split.dims[k]], in_.box_sizes[value + split.dims[k]]};
      };
      if (split.count > 0) {
        record.offset0 = pair(0).offset;
        record.size0 = pair(0).size;
      }
      if (split.count > 1) {
        record.offset1 = pair(1).offset;
        record.size1 = pair(1).size;
      }
      for (uint32_t k = 2; k < split.count; ++k) catalog_->more.push_back(pair(k));
      catalog_->boxes.push_back(record);
      add_mark(box_ + b);
    }
    return local_ ? check_pieces(tensor) : Status();
  }

  Status check_pieces(const TensorRecord& tensor) {
    if (in_.numbers == nullptr || tensor.chunk_count < 2) return {};
    pieces_.clear();
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c)
      pieces_.push_back(catalog_->boxes[c].place);
    std::ranges::sort(pieces_);
    const auto doubled = std::ranges::adjacent_find(pieces_);
    if (doubled == pieces_.end()) return {};
    return invalid_argument(fmt::format("two of its boxes have number {}", *doubled));
  }

  void add_mark(uint64_t box) {
    if (in_.secondary != nullptr && local_) {
      listing_->secondary.push_back(in_.secondary[box] != 0 ? 1 : 0);
    }
  }

  Status add_object(size_t i) {
    ObjectRecord record;
    if (!in_.box_ranges.empty() && in_.box_ranges[i + 1] - in_.box_ranges[i] != 1)
      return invalid_argument("an object has one box of no dimensions");
    if (!in_.shape_offsets.empty() && in_.shape_offsets[i + 1] != in_.shape_offsets[i])
      return invalid_argument("an object has no extents");
    SHW_RETURN_IF_ERROR(add_texts(i, &record.name, &record.path));
    SHW_ASSIGN_OR_RETURN(record.kind, kind_of(i));
    if (record.kind == EntryKind::kAuto) record.kind = EntryKind::kReplicated;
    if (record.kind == EntryKind::kSharded) return invalid_argument("an object cannot be sharded");
    SHW_ASSIGN_OR_RETURN(record.rank, owner_of(record.kind, box_, 1));
    if (!local_) {
      SHW_ASSIGN_OR_RETURN(record.place, place_of(box_, 0));
    }
    record.size_bytes = in_.object_sizes.empty() ? 0 : in_.object_sizes[i];
    if (record.size_bytes > kMaxDescribedObjectBytes) {
      return resource_exhausted(
          "object_bytes",
          fmt::format("{} bytes are more than {}", record.size_bytes, kMaxDescribedObjectBytes));
    }
    object_begins_.push_back(static_cast<uint32_t>(catalog_->tensors.size()));
    catalog_->objects.push_back(record);
    ++box_;
    return {};
  }

  void add_attributes() {
    if (in_.attributes.offsets.empty() || in_.attributes.offsets[in_.count] == 0) return;
    for (const bool objects : {false, true}) {
      for (size_t i = 0; i < in_.count; ++i) {
        if ((in_.dtypes[i] == 0) != objects) continue;
        const std::string_view text = in_.attributes.at(i);
        listing_->attributes.insert(listing_->attributes.end(), text.begin(), text.end());
        listing_->attribute_ends.push_back(listing_->attributes.size());
      }
    }
  }

  Status add_order() {
    if (std::ranges::none_of(listing_->secondary, [](uint8_t mark) { return mark != 0; }))
      listing_->secondary.clear();
    if (in_.order == nullptr) return {};
    if (!local_) return invalid_argument("a merged plan has no order of its own");
    std::vector<bool> listed(box_, false);
    bool natural = true;
    listing_->order.reserve(box_);
    for (uint64_t i = 0; i < box_; ++i) {
      const uint64_t box = in_.order[i];
      if (box >= box_ || listed[box]) {
        return invalid_argument(fmt::format("order[{}] is {}, which is twice there or no box of {}",
                                            i, box, box_))
            .with_detail("parameter", "order");
      }
      listed[box] = true;
      natural &= box == i;
      listing_->order.push_back(static_cast<uint32_t>(box));
    }
    if (natural) listing_->order.clear();
    return {};
  }

  const EntryArrays& in_;
  std::span<const KindPattern> patterns_;
  const bool local_;
  const int32_t rank_;
  Catalog* catalog_ = nullptr;
  Listing* listing_ = nullptr;
  HashIndex names_;
  DTypes dtypes_;
  uint64_t box_ = 0;    // of the next entry
  uint64_t value_ = 0;  // where its first box begins in box_offsets and box_sizes
  std::vector<uint32_t> object_begins_;
  bool objects_between_ = false;  // a tensor came after an object
  std::vector<uint32_t> pieces_;
};

}  // namespace

Result<LocalSavePlan> describe_local(const EntryArrays& entries, const DescribeRules& rules) {
  // World size 0: not known, any rank.
  if (rules.world_size < 0 || rules.world_size > kMaxWorldSize || rules.rank < 0 ||
      rules.rank >= (rules.world_size == 0 ? kMaxWorldSize : rules.world_size)) {
    return invalid_argument(fmt::format("rank {} of {} is not a position among 1 to {} ranks",
                                        rules.rank, rules.world_size, kMaxWorldSize))
        .with_detail("parameter", "rank");
  }
  if (!is_valid_utf8(rules.agreement))
    return invalid_argument("the agreement is not UTF-8").with_detail("parameter", "agreement");
  LocalSavePlan plan;
  plan.rank = rules.rank;
  plan.world_size = rules.world_size;
  plan.options_text = rules.agreement;
  plan.options_digest = options_text_digest(plan.options_text);
  Describer describer(entries, rules.kinds, /*local=*/true, rules.rank);
  SHW_RETURN_IF_ERROR(describer.run(&plan.catalog, &plan.listing));
  describer.digests(&plan.tensor_digests, &plan.object_digests);
  return plan;
}

Result<GlobalSavePlan> describe_merged(const EntryArrays& entries,
                                       std::span<const KindPattern> kinds) {
  GlobalSavePlan plan;
  Describer describer(entries, kinds, /*local=*/false, -1);
  SHW_RETURN_IF_ERROR(describer.run(&plan.catalog, &plan.listing));
  return plan;
}

EntryColumns::EntryColumns(const GlobalSavePlan& plan) {
  add_all(plan.catalog, view_of(plan.listing), {}, {}, Numbers::kPlace);
}

EntryColumns::EntryColumns(const LocalView& view, bool kept) {
  add_all(view.catalog, view.listing, view.tensor_digests, view.object_digests,
          kept ? Numbers::kNumber : Numbers::kPlace);
  if (view.listing.secondary.empty()) return;
  for_each_item(view, [&](uint32_t item) {
    const std::span<const uint8_t> marks = view.listing.secondary;
    secondary_.push_back(item < marks.size() ? marks[item] : 0);
  });
}

template <typename Columns>
void EntryColumns::add_all(const Columns& catalog, const ListingView& listing,
                           std::span<const Digest128> tensor_digests,
                           std::span<const Digest128> object_digests, Numbers numbers) {
  const bool has_digests = !tensor_digests.empty() || !object_digests.empty();
  size_t tensor = 0;
  size_t object = 0;
  const auto add_attribute = [&](size_t entry) {
    const std::string_view text = listing.attribute(entry);
    attributes_.insert(attributes_.end(), text.begin(), text.end());
    attribute_offsets_.push_back(attributes_.size());
  };
  const auto add_tensors_until = [&](size_t end) {
    for (; tensor < end; ++tensor) {
      add_tensor(catalog, tensor, numbers);
      add_attribute(tensor);
      if (has_digests) add_digest(tensor_digests, tensor);
    }
  };
  for (; object < catalog.objects.size(); ++object) {
    add_tensors_until(listing.object_begins.empty() ? catalog.tensors.size()
                                                    : listing.object_begins[object]);
    add_object(catalog, object, numbers);
    add_attribute(catalog.tensors.size() + object);
    if (has_digests) add_digest(object_digests, object);
  }
  add_tensors_until(catalog.tensors.size());
  order_.assign(listing.order.begin(), listing.order.end());
}

void EntryColumns::add_entry(std::string_view name, std::string_view path, EntryKind kind) {
  names_.insert(names_.end(), name.begin(), name.end());
  name_offsets_.push_back(names_.size());
  paths_.insert(paths_.end(), path.begin(), path.end());
  path_offsets_.push_back(paths_.size());
  kinds_.push_back(static_cast<int32_t>(kind));
}

template <typename Columns>
void EntryColumns::add_tensor(const Columns& catalog, size_t tensor, Numbers numbers) {
  const TensorRecord& record = catalog.tensors[tensor];
  const std::span<const int64_t> shape = catalog.shape(tensor);
  add_entry(catalog.texts.at(record.name), catalog.texts.at(record.path), record.kind);
  dtypes_.push_back(dtype_number(record.dtype));
  shapes_.insert(shapes_.end(), shape.begin(), shape.end());
  const internal::SplitDims split = internal::split_dims(shape, record.split_mask);
  for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
    const size_t value = box_offsets_.size();
    box_offsets_.resize(value + shape.size(), 0);
    box_sizes_.insert(box_sizes_.end(), shape.begin(), shape.end());
    for (uint32_t k = 0; k < split.count; ++k) {
      const ExtentPair pair = internal::chunk_pair(catalog, record, c, k);
      box_offsets_[value + split.dims[k]] = pair.offset;
      box_sizes_[value + split.dims[k]] = pair.size;
    }
    numbers_.push_back(numbers == Numbers::kPlace
                           ? internal::chunk_place(catalog, record, c)
                           : internal::box_record(catalog, record, c).number);
  }
  shape_offsets_.push_back(shapes_.size());
  box_ranges_.push_back(box_ranges_.back() + record.chunk_count);
  object_sizes_.push_back(0);
}

template <typename Columns>
void EntryColumns::add_object(const Columns& catalog, size_t object, Numbers numbers) {
  const ObjectRecord& record = catalog.objects[object];
  add_entry(catalog.texts.at(record.name), catalog.texts.at(record.path), record.kind);
  dtypes_.push_back(0);
  shape_offsets_.push_back(shapes_.size());
  box_ranges_.push_back(box_ranges_.back() + 1);
  numbers_.push_back(numbers == Numbers::kPlace ? record.place : 0);
  object_sizes_.push_back(record.size_bytes);
}

void EntryColumns::add_digest(std::span<const Digest128> digests, size_t index) {
  digests_.push_back(digests.empty() ? Digest128{} : digests[index]);
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
