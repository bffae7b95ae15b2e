// SPDX-License-Identifier: Apache-2.0
//
// Entries to descriptions.
#include "core/plan/describe/builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/describe/entry_kind.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/options_text.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {
namespace {

using Chunk = CatalogBuilder::Chunk;

constexpr size_t kKnownLayouts = 64;  // layouts whose cuts stay at hand

// Those that have elements, with their numbers.
std::vector<Chunk> held_chunks(std::span<const Box> boxes) {
  std::vector<Chunk> held;
  held.reserve(boxes.size());
  for (size_t p = 0; p < boxes.size(); ++p) {
    if (!box_is_empty(boxes[p])) held.push_back({boxes[p], static_cast<uint32_t>(p)});
  }
  return held;
}

// A tensor that must be whole on its rank, by the proof that a merge makes.
Status check_holds_all(const DescriptionBuilder::Tensor& tensor, EntryKind kind, int32_t rank,
                       std::span<const Chunk> boxes) {
  if (kind == EntryKind::kSharded) return {};
  Catalog catalog;
  CatalogBuilder::Tensor whole{tensor.name, tensor.path, tensor.dtype, EntryKind::kReplicated,
                               -1,          tensor.shape};
  SHW_RETURN_IF_ERROR(CatalogBuilder(&catalog).add_tensor(whole, boxes));
  Status status = prove_cover(catalog, 0, Copies::kRefused, "piece");
  if (status.ok()) return status;
  return std::move(status)
      .with_detail("rank", std::to_string(rank))
      .annotated(fmt::format("describe {} tensor '{}' of rank {}, which must hold all of it",
                             entry_kind_name(kind), escape_text(tensor.name), rank));
}

// No piece is listed twice.
Status check_pieces(std::span<const uint32_t> pieces) {
  if (std::ranges::is_sorted(pieces, std::ranges::less_equal())) return {};
  std::vector<uint32_t> sorted(pieces.begin(), pieces.end());
  std::ranges::sort(sorted);
  const auto doubled = std::ranges::adjacent_find(sorted);
  if (doubled == sorted.end()) return {};
  return invalid_argument(fmt::format("two of its boxes have number {}", *doubled));
}

std::string_view bytes_of(std::span<const ShardAxis> axes) {
  return {reinterpret_cast<const char*>(axes.data()), axes.size_bytes()};
}

// The boxes are the one that the axes give, empty ones aside.
bool agree(const Box& box, std::span<const Box> boxes) {
  const Box* held = nullptr;
  for (const Box& each : boxes) {
    if (box_is_empty(each)) continue;
    if (held != nullptr) return false;
    held = &each;
  }
  return held == nullptr ? box_is_empty(box) : *held == box;
}

}  // namespace

Result<DescriptionBuilder> DescriptionBuilder::create(std::vector<KindPattern> kinds,
                                                      std::string agreement,
                                                      RankPosition position) {
  const int32_t count = position.world_size == 0 ? kMaxWorldSize : position.world_size;
  if (count < 1 || count > kMaxWorldSize || position.rank < 0 || position.rank >= count) {
    return invalid_argument(fmt::format("rank {} of {} is not a position among 1 to {} ranks",
                                        position.rank, position.world_size, kMaxWorldSize))
        .with_detail("parameter", "rank")
        .with_detail("rank", std::to_string(position.rank));
  }
  if (!is_valid_utf8(agreement))
    return invalid_argument("the agreement is not UTF-8").with_detail("parameter", "agreement");
  return DescriptionBuilder(std::move(kinds), std::move(agreement), position);
}

DescriptionBuilder::DescriptionBuilder(std::vector<KindPattern> kinds, std::string agreement,
                                       RankPosition position)
    : kinds_(std::move(kinds)), position_(position) {
  description_.options_text = std::move(agreement);
  description_.options_digest = options_text_digest(description_.options_text);
}

std::string_view DescriptionBuilder::name_at(size_t position) const {
  const Catalog& catalog = description_.catalog;
  return position % 2 == 0 ? catalog.tensor_name(position / 2) : catalog.object_name(position / 2);
}

Status DescriptionBuilder::check_name(std::string_view name) const {
  const bool known =
      name_index_.find(hash_text(name), [&](size_t i) { return name_at(i) == name; }).has_value();
  if (!known) return {};
  return already_exists(fmt::format("the name '{}' is described twice", escape_text(name)))
      .with_detail("tensor", name);
}

void DescriptionBuilder::index_name(std::string_view name, size_t position) {
  name_index_.reserve(description_.catalog.tensors.size() + description_.catalog.objects.size(),
                      [this](size_t i) { return hash_text(name_at(i)); });
  name_index_.insert(hash_text(name), position);
}

Status DescriptionBuilder::append(const Tensor& tensor, EntryKind kind, uint32_t form) {
  CatalogBuilder::Tensor record{
      tensor.name, tensor.path, tensor.dtype, kind, kind == EntryKind::kRankLocal ? 0 : -1,
      tensor.shape};
  SHW_RETURN_IF_ERROR(check_name(tensor.name));
  SHW_RETURN_IF_ERROR(CatalogBuilder(&description_.catalog).add_tensor(record, {}));
  index_name(tensor.name, 2 * (description_.catalog.tensors.size() - 1));
  description_.forms.push_back(form);
  description_.tensor_digests.push_back(form == kWhole ? tensor.digest : Digest128{});
  if (form != kWhole && tensor.digest != Digest128{}) {
    part_.digest_tensors.push_back(static_cast<uint32_t>(description_.forms.size() - 1));
    part_.tensor_digests.push_back(tensor.digest);
  }
  return {};
}

Status DescriptionBuilder::add_whole(const Tensor& tensor) {
  return append(tensor, internal::tensor_kind(kinds_, tensor.name, tensor.kind, true), kWhole);
}

Status DescriptionBuilder::append_boxes(const Tensor& tensor, EntryKind kind,
                                        std::span<const Box> boxes) {
  for (const Box& box : boxes) SHW_RETURN_IF_ERROR(check_box(box, tensor.shape));
  const std::vector<Chunk> held = held_chunks(boxes);
  SHW_RETURN_IF_ERROR(check_holds_all(tensor, kind, position_.rank, held));
  SHW_RETURN_IF_ERROR(append(tensor, kind, kBoxes));
  add_list(tensor.shape, held);
  return {};
}

void DescriptionBuilder::add_list(std::span<const int64_t> shape, std::span<const Chunk> boxes) {
  BoxList list;
  list.split_mask = internal::split_mask_of(shape, boxes);
  list.begin = static_cast<uint32_t>(part_.boxes.size());
  list.more_begin = part_.more.size();
  list.count = static_cast<uint32_t>(boxes.size());
  const internal::SplitDims split = internal::split_dims(shape, list.split_mask);
  for (const Chunk& each : boxes) {
    ChunkRecord record;
    record.tensor = static_cast<uint32_t>(description_.forms.size() - 1);
    record.place = each.place;
    internal::pack_box(split, each.box, &record, &part_.more);
    part_.boxes.push_back(record);
  }
  part_.lists.push_back(list);
}

Status DescriptionBuilder::add_listed(const Tensor& tensor, std::span<const Box> boxes,
                                      std::span<const uint32_t> pieces) {
  std::vector<Chunk> listed;
  listed.reserve(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    SHW_RETURN_IF_ERROR(check_box(boxes[i], tensor.shape));
    listed.push_back({boxes[i], pieces[i]});
  }
  SHW_RETURN_IF_ERROR(check_pieces(pieces));
  const bool whole = boxes.size() == 1 && boxes[0] == whole_box(tensor.shape);
  const EntryKind kind = internal::tensor_kind(kinds_, tensor.name, tensor.kind, whole);
  SHW_RETURN_IF_ERROR(append(tensor, kind, kBoxes));
  add_list(tensor.shape, listed);
  return {};
}

Status DescriptionBuilder::add_boxes(const Tensor& tensor, std::span<const Box> boxes) {
  const bool whole = boxes.size() == 1 && boxes[0] == whole_box(tensor.shape);
  const EntryKind kind = internal::tensor_kind(kinds_, tensor.name, tensor.kind, whole);
  if (whole) return append(tensor, kind, kWhole);
  return append_boxes(tensor, kind, boxes);
}

Result<const std::optional<std::vector<ShardAxis>>*> DescriptionBuilder::axes_for(
    const Layout& layout, size_t dimension_count) {
  for (const Known& known : known_) {
    if (known.layout == &layout && known.dimension_count == dimension_count) return &known.axes;
  }
  SHW_ASSIGN_OR_RETURN(auto axes, shard_axes_of(layout, dimension_count, position_.rank));
  if (known_.size() == kKnownLayouts) known_.clear();
  known_.push_back({&layout, dimension_count, std::move(axes)});
  return &known_.back().axes;
}

uint32_t DescriptionBuilder::form_of(std::span<const ShardAxis> axes) {
  const auto hash_at = [this](size_t i) { return hash_text(bytes_of(description_.layout(i))); };
  const auto found = layout_index_.find(hash_text(bytes_of(axes)), [&](size_t i) {
    return std::ranges::equal(description_.layout(i), axes);
  });
  if (found.has_value()) return kFirstLayout + static_cast<uint32_t>(*found);
  const size_t number = description_.layout_ends.size();
  description_.axes.insert(description_.axes.end(), axes.begin(), axes.end());
  description_.layout_ends.push_back(static_cast<uint32_t>(description_.axes.size()));
  layout_index_.reserve(number + 1, hash_at);
  layout_index_.insert(hash_text(bytes_of(axes)), number);
  return kFirstLayout + static_cast<uint32_t>(number);
}

Status DescriptionBuilder::add_sharded(const Tensor& tensor, const Layout& layout) {
  SHW_ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                       layout.pieces(tensor.shape, position_.rank));
  std::vector<Box> boxes;
  boxes.reserve(pieces.size());
  for (const Piece& piece : pieces) boxes.push_back(piece.box);
  return add_ruled(tensor, layout, boxes);
}

Status DescriptionBuilder::add_pieces(const Tensor& tensor, const PieceList& pieces,
                                      const Layout* layout) {
  std::vector<Box> boxes;
  boxes.reserve(pieces.size());
  for (size_t p = 0; p < pieces.size(); ++p) boxes.push_back(pieces[p].box);
  // By a rule the only box of a rank is the first of its pieces.
  const bool first =
      boxes.empty() || !box_is_empty(boxes[0]) || std::ranges::all_of(boxes, box_is_empty);
  return layout == nullptr || !first ? add_boxes(tensor, boxes) : add_ruled(tensor, *layout, boxes);
}

Status DescriptionBuilder::add_ruled(const Tensor& tensor, const Layout& layout,
                                     std::span<const Box> boxes) {
  if (position_.world_size == 0) {
    return invalid_argument(
               "a layout says what each of some ranks holds, but their number is not known")
        .with_detail("parameter", "world_size");
  }
  SHW_ASSIGN_OR_RETURN(const auto* axes, axes_for(layout, tensor.shape.size()));
  const bool whole = axes->has_value() && (*axes)->empty() && !layout.is_flat();
  const EntryKind kind = internal::tensor_kind(kinds_, tensor.name, tensor.kind, whole);
  const bool ruled = axes->has_value()
                         ? !layout.is_flat() && (*axes)->size() <= kMaxShardAxes &&
                               agree(box_of_axes(**axes, tensor.shape, position_.rank), boxes)
                         : std::ranges::all_of(boxes, box_is_empty);
  if (!ruled) return append_boxes(tensor, kind, boxes);
  SHW_RETURN_IF_ERROR(check_holds_all(tensor, kind, position_.rank, held_chunks(boxes)));
  if (whole) return append(tensor, kind, kWhole);
  if (kind == EntryKind::kRankLocal) return append_boxes(tensor, kind, boxes);
  return append(tensor, kind, axes->has_value() ? form_of(**axes) : uint32_t{kNothing});
}

Status DescriptionBuilder::add_object(const Object& object) {
  const EntryKind kind = internal::object_kind(kinds_, object.name, object.kind);
  const bool local = kind == EntryKind::kRankLocal;
  ObjectRecord record;
  record.kind = kind;
  record.rank = local ? 0 : -1;
  record.size_bytes = object.size_bytes;
  Catalog& catalog = description_.catalog;
  SHW_RETURN_IF_ERROR(check_name(object.name));
  SHW_RETURN_IF_ERROR(CatalogBuilder(&catalog, object.max_bytes)
                          .add_object(record, object.name, object.path, object.content_type));
  index_name(object.name, 2 * (catalog.objects.size() - 1) + 1);
  description_.object_digests.push_back(local ? Digest128{} : object.digest);
  if (!local) return {};
  part_.object_sizes.push_back(object.size_bytes);
  catalog.objects.back().size_bytes = 0;
  return {};
}

Result<LocalPlan> DescriptionBuilder::finish() {
  LocalPlan plan{std::exchange(description_, {}), std::exchange(part_, {})};
  known_.clear();
  layout_index_ = HashIndex();
  name_index_ = HashIndex();
  description_.options_text = plan.description.options_text;
  description_.options_digest = plan.description.options_digest;
  const auto all_zero = [](const std::vector<Digest128>& digests) {
    return std::ranges::all_of(digests, [](const Digest128& each) { return each == Digest128{}; });
  };
  if (all_zero(plan.description.tensor_digests)) plan.description.tensor_digests.clear();
  if (all_zero(plan.description.object_digests)) plan.description.object_digests.clear();
  plan.part.rank = position_.rank;
  plan.part.world_size = position_.world_size;
  SHW_ASSIGN_OR_RETURN(plan.description.digest, description_digest(plan.description));
  plan.part.description_digest = plan.description.digest;
  return plan;
}

}  // namespace shardwright::plan
