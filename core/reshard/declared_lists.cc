// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/declared_lists.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::reshard {
namespace {

// Groups of one pipeline stage, and of the same experts, hold the same parameters, of which each
// has other rows.
bool has_first_rows(const Bucket& bucket, const JobShape& shape) {
  const int64_t groups = bucket.prefix == kOfExperts ? shape.expert_tensor : shape.tensor;
  return bucket.group % groups == 0;
}

}  // namespace

DeclaredLists::DeclaredLists(const DeclaredInput& input) : catalog_(input.known.catalog) {
  using Buffer = std::tuple<std::string, uint32_t, uint32_t>;  // optimizer, group, number
  std::map<Buffer, List> buffers;
  for (size_t i = 0; i < input.assigned.size(); ++i) {
    const Bucket& bucket = input.known.buckets[input.assigned[i].bucket];
    if (has_first_rows(bucket, input.shape))
      buffers[{bucket.prefix, bucket.group, bucket.buffer}].push_back(i);
  }
  for (auto& [buffer, places] : buffers) {
    std::ranges::reverse(places);
    add_list(std::move(places), input);
  }
  for (const List& list : lists_) find_grouped(list);
  if (!grouped_.has_value()) grouped_ = input.has_grouped_experts;
}

// places: numbers of what is assigned.
void DeclaredLists::add_list(List places, const DeclaredInput& input) {
  List list;
  std::set<std::pair<std::vector<size_t>, Dims>> known;
  for (const DeclaredParameter& each : parameters_)
    known.emplace(each.tensors, each.leading(row_dimension(each.box)));
  for (const size_t place : places) {
    const Assigned& assigned = input.assigned[place];
    const Bucket& bucket = input.known.buckets[assigned.bucket];
    DeclaredParameter parameter;
    for (const LocalPart& part : input.known.parameters[assigned.parameter].parts) {
      if (std::ranges::find(parameter.tensors, part.tensor) == parameter.tensors.end())
        parameter.tensors.push_back(part.tensor);
    }
    parameter.box = input.known.parameters[assigned.parameter].parts[0].box;
    // An embedding that the last stage shares is there once more, and where no chunks tell it the
    // halves of a gated unit lie one behind the other.
    if (!known.emplace(parameter.tensors, parameter.leading(row_dimension(parameter.box))).second)
      continue;
    parameter.dtypes = bucket.dtypes;
    for (const auto& [state, tensor] : bucket.states) parameter.states.push_back(state);
    const std::string_view name = catalog_.tensor_name(parameter.tensors[0]);
    parameter.layer = layer_of(name, parameter.box);
    parameter.place = declared_place(name, parameter.box);
    if (std::ranges::find(dtypes_, bucket.dtypes) == dtypes_.end())
      dtypes_.push_back(bucket.dtypes);
    list.push_back(parameters_.size());
    parameters_.push_back(std::move(parameter));
  }
  lists_.push_back(std::move(list));
}

// Two experts of a layer tell it, where one rank has them.
void DeclaredLists::find_grouped(const List& list) {
  for (size_t i = 1; i < list.size() && !grouped_.has_value(); ++i) {
    const DeclaredParameter& a = parameters_[list[i - 1]];
    const DeclaredParameter& b = parameters_[list[i]];
    if (!is_of_experts(catalog_.tensor_name(a.tensors[0])) ||
        !is_of_experts(catalog_.tensor_name(b.tensors[0])) || !a.place || !b.place ||
        a.layer != b.layer)
      continue;
    if (a.tensors == b.tensors) grouped_ = true;
    const bool has_others = std::ranges::any_of(list, [&](size_t other) {
      const DeclaredParameter& each = parameters_[other];
      return each.tensors == a.tensors && each.layer == a.layer && each.place &&
             each.place->expert != a.place->expert;
    });
    if (a.tensors != b.tensors && has_others) grouped_ = false;
  }
}

// Of parameters of different lists; nullopt: not known.
std::optional<bool> DeclaredLists::is_before(size_t a, size_t b) const {
  const DeclaredParameter& one = parameters_[a];
  const DeclaredParameter& other = parameters_[b];
  if (one.layer && other.layer && *one.layer != *other.layer) return *one.layer < *other.layer;
  if (one.layer.has_value() != other.layer.has_value()) {
    const DeclaredParameter& outside = one.layer ? other : one;
    if (!outside.place) return std::nullopt;
    return is_behind_layers(catalog_.tensor_name(outside.tensors[0])) == one.layer.has_value();
  }
  if (!one.place || !other.place) return std::nullopt;
  const DeclaredPlace& first = *one.place;
  const DeclaredPlace& second = *other.place;
  const bool both = is_of_experts(catalog_.tensor_name(one.tensors[0])) &&
                    is_of_experts(catalog_.tensor_name(other.tensors[0]));
  if (both && first.expert != second.expert) {
    if (!grouped_.has_value()) return std::nullopt;
    if (*grouped_ && first.parameter != second.parameter) return first.parameter < second.parameter;
  }
  if (first == second) return std::nullopt;
  return first < second;
}

Status DeclaredLists::not_known(size_t a, size_t b) const {
  const auto text = [this](size_t number) {
    const DeclaredParameter& each = parameters_[number];
    return fmt::format("'{}' {}", escape_text(catalog_.tensor_name(each.tensors[0])),
                       box_text(each.box));
  };
  return failed_precondition(
             fmt::format(
                 "{} and {} come to lie in one buffer, and which of them the model declares "
                 "first is not known; ask for 'fully_reshardable', which any job loads, or "
                 "say 'grouped_experts' in a map where both are of experts",
                 text(a), text(b)))
      .with_detail("tensor", catalog_.tensor_name(parameters_[a].tensors[0]));
}

// Where lists share a layer, each of them has it in the order that is known.
Status DeclaredLists::check_order(const std::vector<List>& lists) const {
  std::map<int64_t, int> counts;
  for (const List& list : lists) {
    std::set<int64_t> layers;
    for (const size_t each : list) {
      if (parameters_[each].layer) layers.insert(*parameters_[each].layer);
    }
    for (const int64_t layer : layers) ++counts[layer];
  }
  for (const List& list : lists) {
    for (size_t i = 1; i < list.size(); ++i) {
      const std::optional<int64_t> layer = parameters_[list[i]].layer;
      if (!layer || layer != parameters_[list[i - 1]].layer || counts[*layer] < 2) continue;
      if (is_before(list[i - 1], list[i]) != true) return not_known(list[i - 1], list[i]);
    }
  }
  return {};
}

Result<std::vector<size_t>> DeclaredLists::in_order(const std::vector<bool>& wanted) const {
  std::vector<List> lists;
  for (const List& list : lists_) {
    List kept;
    std::ranges::copy_if(list, std::back_inserter(kept), [&](size_t each) { return wanted[each]; });
    if (!kept.empty()) lists.push_back(std::move(kept));
  }
  SHW_RETURN_IF_ERROR(check_order(lists));
  std::vector<size_t> order;
  std::vector<size_t> at(lists.size(), 0);
  while (true) {
    std::optional<size_t> first;
    for (size_t l = 0; l < lists.size(); ++l) {
      if (at[l] == lists[l].size()) continue;
      if (!first.has_value()) {
        first = l;
        continue;
      }
      const size_t a = lists[*first][at[*first]];
      const size_t b = lists[l][at[l]];
      const std::optional<bool> before = is_before(a, b);
      if (!before.has_value()) return not_known(a, b);
      if (!*before) first = l;
    }
    if (!first.has_value()) return order;
    order.push_back(lists[*first][at[*first]++]);
  }
}

}  // namespace shardwright::reshard
