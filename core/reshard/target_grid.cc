// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/target_grid.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
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
constexpr std::string_view kExpertRows = "linear_fc2.weight";  // each rank has columns of it
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

// The dimension of a tensor's rows; those in front of it number layers and experts.
size_t rows_of(std::string_view name, size_t dimensions, size_t leading) {
  const size_t own = name.ends_with("bias") ? 1 : 2;
  return is_of_experts(name) && dimensions > own ? std::max(leading, dimensions - own) : leading;
}

// Tensor-parallel ranks of experts, as chunks show them; 0: there are no experts.
int64_t expert_tensor_size(const plan::Catalog& catalog) {
  int64_t size = 0;
  for (size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string_view name = catalog.tensor_name(i);
    if (!is_of_model(name) || !is_of_experts(name) || catalog.tensors[i].chunk_count == 0) continue;
    size = std::max<int64_t>(size, 1);
    const Dims counts = grid_of(catalog, i);
    const size_t columns = rows_of(name, counts.size(), leading_of(catalog, i)) + 1;
    if (name.ends_with(kExpertRows) && columns < counts.size())
      size = std::max(size, counts[columns]);
  }
  return size;
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
  const int64_t expert_tensor = expert_tensor_size(catalog);
  shape.expert_tensor = expert_tensor > 0 ? expert_tensor : shape.tensor;
  if (experts > 0)
    shape.expert = std::max<int64_t>(1, experts / (shape.pipeline * shape.expert_tensor));
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
  if (extent % places(name) == 0) return {};
  if (has_any(name, kVocabulary)) {
    split->dimension = SIZE_MAX;
    return {};
  }
  return no_fit(name, fmt::format("{} of dimension {} are not shared out by {} tensor-parallel "
                                  "ranks",
                                  extent, split->dimension, places(name)));
}

int64_t TargetGrid::places(std::string_view name) const {
  return is_of_experts(name) ? target_.expert_tensor : target_.tensor;
}

Status TargetGrid::add_tensor(const plan::Catalog& stored, size_t tensor, const JobShape& source) {
  const std::string_view name = stored.tensor_name(tensor);
  const std::span<const int64_t> shape = stored.shape(tensor);
  Split split;
  if (shape.empty()) return {};
  split.leading = leading_of(stored, tensor);
  const Dims counts = grid_of(stored, tensor);
  const int64_t before = is_of_experts(name) ? source.expert_tensor : source.tensor;
  const size_t first = rows_of(name, shape.size(), split.leading);
  for (size_t d = first; d < counts.size(); ++d) {
    if (counts[d] <= 1) continue;
    split.dimension = d;
    if (counts[d] == 2 * before && !has_any(name, kVocabulary)) split.halves = 2;
    break;
  }
  if (split.dimension == SIZE_MAX) {
    const bool is_norm = name.find("layer_norm") != std::string_view::npos;
    if (!is_norm && has_any(name, kColumns)) split.dimension = first;
    if (has_any(name, kRows) && first + 1 < shape.size()) split.dimension = first + 1;
  }
  SHW_RETURN_IF_ERROR(check_split(name, shape, &split));
  if (const std::optional<int64_t> layer = layer_in_name(name); layer.has_value()) {
    split.layer = *layer;
    layers_ = std::max(layers_, *layer + 1);
  } else if (split.leading > 0) {
    layers_ = std::max(layers_, shape[0]);
  }
  split.is_behind = is_behind_layers(name);
  splits_[std::string(name)] = split;
  return {};
}

Result<TargetGrid> TargetGrid::create(const plan::Catalog& stored, const JobShape& source,
                                      const TargetJob& target) {
  TargetGrid grid(target);
  for (size_t i = 0; i < stored.tensors.size(); ++i) {
    if (!is_of_model(stored.tensor_name(i)) || stored.tensors[i].chunk_count == 0) continue;
    SHW_RETURN_IF_ERROR(grid.add_tensor(stored, i, source));
  }
  SHW_RETURN_IF_ERROR(grid.check_stages(source));
  return grid;
}

Status TargetGrid::check_stages(const JobShape& source) const {
  if (stage_layers_.empty() && target_.pipeline > std::max(layers_, source.pipeline))
    return invalid_argument(
               fmt::format("{} pipeline stages for {} layers", target_.pipeline, layers_))
        .with_detail("parameter", "pp");
  const int64_t sum = std::accumulate(stage_layers_.begin(), stage_layers_.end(), int64_t{0});
  if (stage_layers_.empty() || sum == layers_) return {};
  return invalid_argument(fmt::format("the pipeline stages have {} layers ({}), and the model {}",
                                      sum, fmt::join(stage_layers_, ", "), layers_))
      .with_detail("parameter", "pipeline_layers")
      .with_detail("hint", "say how many layers each stage has, so that all come together");
}

int64_t TargetGrid::stage_of(const Split& split, int64_t layer) const {
  if (layer >= 0 && !stage_layers_.empty()) {
    int64_t stage = 0;
    for (int64_t end = stage_layers_[0]; layer >= end && stage + 1 < target_.pipeline;)
      end += stage_layers_[static_cast<size_t>(++stage)];
    return stage;
  }
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
    const bool has_axis = split.leading > 0 && split.layer < 0;
    each.stage = stage_of(split, has_axis ? box.offsets[0] : split.layer);
    each.place = HeldBox::kAllPlaces;
    const bool is_cut = split.dimension != SIZE_MAX;
    const int64_t ranks = places(found->first);
    const int64_t parts = is_cut ? split.halves * ranks : 1;
    for (int64_t k = 0; k < parts; ++k) {
      held.push_back(each);
      if (!is_cut) continue;
      const size_t d = split.dimension;
      held.back().box.sizes[d] = whole.sizes[d] / parts;
      held.back().box.offsets[d] = k * held.back().box.sizes[d];
      held.back().place = k % ranks;
    }
  }
  return held;
}

// A file for each tensor- and pipeline-parallel place; those of experts may be more.
std::vector<exec::FilePlacement::Part> TargetGrid::parts(const plan::Catalog& view,
                                                         size_t tensor) const {
  std::vector<Part> parts;
  const int64_t files = std::max(target_.tensor, target_.expert_tensor);
  for (HeldBox& each : held(view, tensor)) {
    const int64_t file = each.stage * files + std::max<int64_t>(0, each.place);
    parts.push_back({std::move(each.box), static_cast<uint32_t>(file)});
  }
  if (parts.empty()) parts.push_back({whole_box(view.shape(tensor)), 0});
  return parts;
}

}  // namespace shardwright::reshard
