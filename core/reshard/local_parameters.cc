// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/local_parameters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/megatron/unsharded_state.h"

namespace shardwright::reshard {
namespace {

// Names of what is stored as two chunks of one tensor and held as one parameter: the rows of both
// halves of a gated unit.
constexpr std::string_view kGated = "linear_fc1.";
constexpr std::string_view kStates = "optimizer.state.";

// What is stored as several tensors, by the ends of their names in the order in which one parameter
// holds their rows.
const std::vector<std::vector<std::string_view>> kJoined = {
    {"_w", "_v"},
    {".z", ".x", ".B", ".C", ".dt"},                        // in_proj of Mamba
    {".x", ".B", ".C"},                                     // conv1d of Mamba
    {".query", ".key", ".value", ".z", ".beta", ".alpha"},  // in_proj of a gated delta net
    {".query", ".key", ".value"},
};

std::vector<Box> chunk_boxes(const plan::Catalog& catalog, size_t tensor) {
  const plan::TensorRecord& record = catalog.tensors[tensor];
  std::vector<Box> boxes;
  boxes.reserve(static_cast<size_t>(record.chunk_count));
  for (uint64_t k = 0; k < record.chunk_count; ++k)
    boxes.push_back(catalog.chunk_box(record.chunk_begin + k));
  std::ranges::sort(boxes);
  return boxes;
}

LocalParameter parameter_of(const plan::Catalog& catalog, std::vector<LocalPart> parts) {
  LocalParameter parameter;
  parameter.dtype = catalog.tensors[parts[0].tensor].dtype;
  for (const LocalPart& part : parts) parameter.elements += box_element_count(part.box);
  parameter.parts = std::move(parts);
  return parameter;
}

// Chunk and chunk half of the tensor further on make one parameter.
void add_gated(const plan::Catalog& catalog, size_t tensor, const std::vector<Box>& boxes,
               std::vector<LocalParameter>* found) {
  const std::span<const int64_t> shape = catalog.shape(tensor);
  if (shape.empty()) return;
  for (const Box& box : boxes) {
    const size_t d = row_dimension(box);
    Box other = box;
    other.offsets[d] += shape[d] / 2;
    if (shape[d] % 2 != 0 || !std::ranges::binary_search(boxes, other)) continue;
    found->push_back(parameter_of(catalog, {{tensor, box}, {tensor, other}}));
  }
}

// Number of the tensors that a name with each of the ends has; nullopt where one is missing.
std::optional<std::vector<size_t>> with_ends(const std::map<std::string_view, size_t>& numbers,
                                             std::string_view base,
                                             const std::vector<std::string_view>& ends) {
  std::vector<size_t> tensors;
  for (const std::string_view end : ends) {
    const auto it = numbers.find(std::string(base) + std::string(end));
    if (it == numbers.end()) return std::nullopt;
    tensors.push_back(it->second);
  }
  return tensors;
}

void add_joined(const plan::Catalog& catalog, const std::map<std::string_view, size_t>& numbers,
                std::vector<LocalParameter>* found) {
  for (const auto& [name, first] : numbers) {
    for (const std::vector<std::string_view>& ends : kJoined) {
      if (!name.ends_with(ends[0])) continue;
      const auto tensors = with_ends(numbers, name.substr(0, name.size() - ends[0].size()), ends);
      if (!tensors.has_value()) continue;
      // The same place among the chunks of each; they differ in their rows.
      std::vector<std::vector<Box>> boxes;
      boxes.reserve(tensors->size());
      for (const size_t tensor : *tensors) boxes.push_back(chunk_boxes(catalog, tensor));
      const size_t count = boxes[0].size();
      if (std::ranges::any_of(boxes, [&](const auto& each) { return each.size() != count; }))
        continue;
      for (size_t k = 0; k < count; ++k) {
        std::vector<LocalPart> parts;
        parts.reserve(tensors->size());
        for (size_t t = 0; t < tensors->size(); ++t) parts.push_back({(*tensors)[t], boxes[t][k]});
        found->push_back(parameter_of(catalog, std::move(parts)));
      }
    }
  }
}

}  // namespace

size_t row_dimension(const Box& box) {
  size_t d = 0;
  while (d + 1 < box.sizes.size() && box.sizes[d] == 1) ++d;
  return d;
}

bool is_of_model(std::string_view name) {
  for (const std::string_view other : {"optimizer.", "chained_", "common_state"}) {
    if (name.starts_with(other)) return false;
  }
  return !format::megatron::is_common(name);
}

bool is_of_experts(std::string_view name) {
  return name.find("experts.") != std::string_view::npos &&
         name.find("shared_experts.") == std::string_view::npos;
}

std::string_view model_name(std::string_view name) {
  const size_t at = name.find(kStates);
  if (at == std::string_view::npos) return name;
  const std::string_view rest = name.substr(at + kStates.size());
  const size_t dot = rest.find('.');
  return dot == std::string_view::npos ? name : rest.substr(dot + 1);
}

std::string state_name(std::string_view state, std::string_view parameter) {
  return fmt::format("{}{}.{}", kStates, state, parameter);
}

std::string LocalParameter::text(const plan::Catalog& catalog) const {
  std::string out = fmt::format("'{}' {}", escape_text(name(catalog)), box_text(parts[0].box));
  for (size_t i = 1; i < parts.size(); ++i) out += fmt::format(" and {}", box_text(parts[i].box));
  return out;
}

std::vector<LocalParameter> find_local_parameters(const plan::Catalog& catalog) {
  std::vector<LocalParameter> found;
  std::map<std::string_view, size_t> numbers;
  for (size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string_view name = catalog.tensor_name(i);
    if (!is_of_model(name)) continue;
    numbers[name] = i;
    const std::vector<Box> boxes = chunk_boxes(catalog, i);
    for (const Box& box : boxes) {
      if (!box_is_empty(box)) found.push_back(parameter_of(catalog, {{i, box}}));
    }
    if (name.find(kGated) != std::string_view::npos) add_gated(catalog, i, boxes, &found);
  }
  add_joined(catalog, numbers, &found);
  return found;
}

}  // namespace shardwright::reshard
