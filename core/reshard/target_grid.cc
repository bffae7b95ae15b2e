// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/target_grid.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/reshard/declared_order.h"
#include "core/reshard/local_parameters.h"

namespace shardwright::reshard {
namespace {

// Sizes of vocabularies are padded for the job that loads them, so any cut is as good.
constexpr std::array<std::string_view, 2> kVocabulary = {"word_embeddings.", "output_layer."};
// What ranks split in their first and second dimension, where one rank has all of it.
constexpr std::array<std::string_view, 5> kColumns = {"word_embeddings.weight",
                                                      "output_layer.weight", "linear_qkv.weight",
                                                      "linear_qkv.bias", "linear_fc1."};
constexpr std::array<std::string_view, 2> kRows = {"linear_proj.weight", "linear_fc2.weight"};

template <size_t N>
bool has_any(std::string_view name, const std::array<std::string_view, N>& words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

// Numbers of distinct places of chunks, by dimension.
Dims grid_of(const plan::Catalog& catalog, size_t tensor) {
  const plan::TensorRecord& record = catalog.tensors[tensor];
  std::vector<std::set<int64_t>> offsets(record.dimension_count);
  for (uint64_t k = 0; k < record.chunk_count; ++k) {
    const Box box = catalog.chunk_box(record.chunk_begin + k);
    for (size_t d = 0; d < offsets.size(); ++d) offsets[d].insert(box.offsets[d]);
  }
  Dims counts(offsets.size(), 0);
  for (size_t d = 0; d < offsets.size(); ++d) counts[d] = static_cast<int64_t>(offsets[d].size());
  return counts;
}

// Dimensions in front of which each chunk has one index.
size_t leading_of(const plan::Catalog& catalog, size_t tensor) {
  const plan::TensorRecord& record = catalog.tensors[tensor];
  if (record.chunk_count == 0) return 0;
  const Box box = catalog.chunk_box(record.chunk_begin);
  const std::span<const int64_t> shape = catalog.shape(tensor);
  const size_t most = catalog.tensor_name(tensor).find("layers.") == std::string_view::npos ? 0 : 2;
  size_t d = 0;
  while (d < std::min(most, shape.size() - 1) && box.sizes[d] == 1 && shape.size() > d + 1) ++d;
  return d;
}

Status no_fit(std::string_view name, std::string_view what) {
  return invalid_argument(fmt::format("tensor '{}': {}", escape_text(name), what))
      .with_detail("tensor", name);
}

}  // namespace

JobShape shape_of_source(const plan::Catalog& catalog, const std::vector<Bucket>& buckets) {
  JobShape shape;
  for (size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string_view name = catalog.tensor_name(i);
    if (!is_of_model(name) || !has_any(name, kVocabulary) || catalog.shape(i).empty()) continue;
    shape.tensor = std::max(shape.tensor, grid_of(catalog, i)[0]);
  }
  int64_t dense = 0;
  int64_t experts = 0;
  for (const Bucket& bucket : buckets) {
    int64_t& groups = bucket.prefix == kOfExperts ? experts : dense;
    groups = std::max(groups, static_cast<int64_t>(bucket.group) + 1);
  }
  shape.pipeline = std::max<int64_t>(1, dense / shape.tensor);
  if (experts > 0) shape.expert = std::max<int64_t>(1, experts / shape.pipeline);
  return shape;
}

Status TargetGrid::check_split(std::string_view name, std::span<const int64_t> shape,
                               Split* split) const {
  const bool has_numbers = name.find("local_experts.") != std::string_view::npos;
  if (is_of_experts(name) && !has_numbers && split->leading > 0) {
    const int64_t experts = shape[split->leading - 1];
    if (experts % target_.expert != 0)
      return no_fit(
          name, fmt::format("{} experts are not shared out by {} ranks", experts, target_.expert));
  }
  if (split->dimension == SIZE_MAX) return {};
  const int64_t extent = shape[split->dimension] / split->halves;
  if (extent % target_.tensor == 0) return {};
  if (has_any(name, kVocabulary)) {
    split->dimension = SIZE_MAX;
    return {};
  }
  return no_fit(name, fmt::format("{} of dimension {} are not shared out by {} tensor-parallel "
                                  "ranks",
                                  extent, split->dimension, target_.tensor));
}

Status TargetGrid::add_tensor(const plan::Catalog& stored, size_t tensor, const JobShape& source) {
  const std::string_view name = stored.tensor_name(tensor);
  const std::span<const int64_t> shape = stored.shape(tensor);
  Split split;
  if (shape.empty()) return {};
  split.leading = leading_of(stored, tensor);
  const Dims counts = grid_of(stored, tensor);
  for (size_t d = split.leading; d < counts.size(); ++d) {
    if (counts[d] <= 1) continue;
    split.dimension = d;
    if (counts[d] == 2 * source.tensor && !has_any(name, kVocabulary)) split.halves = 2;
    break;
  }
  const size_t first = split.leading;
  if (split.dimension == SIZE_MAX && !is_of_experts(name)) {
    const bool is_norm = name.find("layer_norm") != std::string_view::npos;
    if (!is_norm && has_any(name, kColumns)) split.dimension = first;
    if (has_any(name, kRows) && first + 1 < shape.size()) split.dimension = first + 1;
  }
  // Whole experts are shared out, not their rows.
  const bool is_whole = split.dimension != SIZE_MAX && is_of_experts(name) &&
                        counts[split.dimension] == split.halves && split.halves == 2;
  SHW_RETURN_IF_ERROR(is_whole ? Status() : check_split(name, shape, &split));
  if (split.leading > 0) layers_ = std::max(layers_, shape[0]);
  const auto layer = layer_of(name, stored.chunk_box(stored.tensors[tensor].chunk_begin));
  if (layer.has_value() && split.leading == 0) split.layer = *layer;
  layers_ = std::max(layers_, split.layer + 1);
  split.is_behind = is_behind_layers(name);
  splits_[std::string(name)] = split;
  return {};
}

Result<TargetGrid> TargetGrid::create(const plan::Catalog& stored, const JobShape& source,
                                      const JobShape& target) {
  TargetGrid grid(target);
  for (size_t i = 0; i < stored.tensors.size(); ++i) {
    if (!is_of_model(stored.tensor_name(i)) || stored.tensors[i].chunk_count == 0) continue;
    SHW_RETURN_IF_ERROR(grid.add_tensor(stored, i, source));
  }
  if (target.pipeline > grid.layers_)
    return invalid_argument(
               fmt::format("{} pipeline stages for {} layers", target.pipeline, grid.layers_))
        .with_detail("parameter", "pp");
  return grid;
}

int64_t TargetGrid::stage_of(const Split& split, int64_t layer) const {
  if (layer >= 0) return layer * target_.pipeline / layers_;
  return split.is_behind ? target_.pipeline - 1 : 0;
}

std::vector<HeldBox> TargetGrid::held(const plan::Catalog& view, size_t tensor) const {
  const Box whole = whole_box(view.shape(tensor));
  const auto found = splits_.find(model_name(view.tensor_name(tensor)));
  if (found == splits_.end() || found->second.leading >= whole.sizes.size()) return {};
  const Split& split = found->second;
  // One box for each index of the dimensions in front, which are then cut.
  std::vector<Box> leading{whole};
  for (size_t d = 0; d < split.leading; ++d) {
    std::vector<Box> next;
    for (const Box& box : leading) {
      for (int64_t i = 0; i < whole.sizes[d]; ++i) {
        next.push_back(box);
        next.back().offsets[d] = i;
        next.back().sizes[d] = 1;
      }
    }
    leading = std::move(next);
  }
  std::vector<HeldBox> held;
  for (const Box& box : leading) {
    HeldBox each{box, Dims(box.offsets.span().first(split.leading))};
    each.stage = stage_of(split, split.leading > 0 ? box.offsets[0] : split.layer);
    each.place = HeldBox::kAllPlaces;
    const bool is_cut = split.dimension != SIZE_MAX;
    const int64_t places = is_of_experts(found->first) ? 1 : target_.tensor;
    const int64_t parts = is_cut ? split.halves * places : 1;
    for (int64_t k = 0; k < parts; ++k) {
      held.push_back(each);
      if (!is_cut) continue;
      const size_t d = split.dimension;
      held.back().box.sizes[d] = whole.sizes[d] / parts;
      held.back().box.offsets[d] = k * held.back().box.sizes[d];
      if (places == target_.tensor) held.back().place = k % places;
    }
  }
  return held;
}

// A file for each tensor- and pipeline-parallel place.
std::vector<exec::FilePlacement::Part> TargetGrid::parts(const plan::Catalog& view,
                                                         size_t tensor) const {
  std::vector<Part> parts;
  for (HeldBox& each : held(view, tensor)) {
    const int64_t file = each.stage * target_.tensor + std::max<int64_t>(0, each.place);
    parts.push_back({std::move(each.box), static_cast<uint32_t>(file)});
  }
  if (parts.empty()) parts.push_back({whole_box(view.shape(tensor)), 0});
  return parts;
}

}  // namespace shardwright::reshard
