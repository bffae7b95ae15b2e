// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/assign_buckets.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/reshard/bucket_layout.h"
#include "core/reshard/declared_order.h"

namespace shardwright::reshard {
namespace {

constexpr size_t kNamedAlike = 4;  // parameters that a message lists

// A place whose size is known, and the parameters that lie there as far as contents tell.
struct Slot {
  size_t bucket = 0;
  int64_t begin = 0;
  int64_t elements = 0;
  std::vector<size_t> alike;  // ascending
};

class Assignment {
 public:
  Assignment(const AssignInput& input, Contents* contents) : input_(input), contents_(*contents) {
    for (size_t p = 0; p < input.parameters.size(); ++p)
      by_size_[input.parameters[p].elements].push_back(p);
  }

  Result<std::vector<Assigned>> run() {
    SHW_RETURN_IF_ERROR(check_said());
    std::vector<Slot> slots;
    for (size_t b = 0; b < input_.buckets.size(); ++b) {
      const bool is_next_group = b > 0 && (bucket(b).prefix != bucket(b - 1).prefix ||
                                           bucket(b).group != bucket(b - 1).group);
      if (is_next_group) {
        SHW_RETURN_IF_ERROR(resolve(slots));
        slots.clear();
      }
      SHW_RETURN_IF_ERROR(find_slots(b, &slots));
    }
    SHW_RETURN_IF_ERROR(resolve(slots));
    std::ranges::sort(assigned_, [](const Assigned& a, const Assigned& b) {
      return std::tie(a.bucket, a.begin) < std::tie(b.bucket, b.begin);
    });
    return std::move(assigned_);
  }

 private:
  const Bucket& bucket(size_t number) const { return input_.buckets[number]; }
  std::string text(size_t parameter) const {
    return input_.parameters[parameter].text(input_.catalog);
  }
  std::string_view name(size_t parameter) const {
    return input_.parameters[parameter].name(input_.catalog);
  }
  const Box& box(size_t parameter) const { return input_.parameters[parameter].parts[0].box; }
  Status at(const Slot& slot, std::string_view what) const {
    return failed_precondition(fmt::format("bucket '{}', element {}: {}; a map can say what lies "
                                           "there",
                                           escape_text(bucket(slot.bucket).name()), slot.begin,
                                           what))
        .with_detail("tensor", bucket(slot.bucket).name());
  }

  Status check_said() const;
  std::optional<size_t> said_parameter(const SaidPlace& said) const;
  Status find_slots(size_t number, std::vector<Slot>* slots);
  Result<bool> is_pad_between(size_t number, int64_t end, int64_t begin);
  Result<Slot> slot_at(size_t number, int64_t begin);
  Result<std::vector<size_t>> parameters_at(size_t number, int64_t begin, int64_t elements);
  Status resolve(std::span<const Slot> slots);
  Status resolve_alike(std::span<const Slot* const> slots, std::set<size_t>* used,
                       const std::set<int64_t>& layers);
  Result<bool> are_equal_in_all_states(std::span<const Slot* const> slots);
  Status take(const Slot& slot, size_t parameter, std::set<size_t>* used);

  const AssignInput& input_;
  Contents& contents_;
  std::map<int64_t, std::vector<size_t>> by_size_;
  std::vector<Assigned> assigned_;
  std::set<size_t> covered_;  // by any group
};

std::optional<size_t> Assignment::said_parameter(const SaidPlace& said) const {
  for (size_t p = 0; p < input_.parameters.size(); ++p) {
    const std::vector<LocalPart>& parts = input_.parameters[p].parts;
    const bool same = std::ranges::equal(parts, said.parts, [&](const auto& a, const auto& b) {
      return input_.catalog.tensor_name(a.tensor) == b.first && a.box == b.second;
    });
    if (same) return p;
  }
  return std::nullopt;
}

Status Assignment::check_said() const {
  for (const SaidPlace& said : input_.said) {
    const auto fail = [&](std::string_view what) {
      return invalid_argument(fmt::format("the map says what lies in '{}' at {}, but {}",
                                          escape_text(said.bucket), said.begin, what))
          .with_detail("parameter", "map");
    };
    const bool known = std::ranges::any_of(
        input_.buckets, [&](const Bucket& each) { return each.name() == said.bucket; });
    if (!known) return fail("there is no such bucket");
    if (!said_parameter(said).has_value()) return fail("no parameter is stored in these boxes");
  }
  return {};
}

Status Assignment::find_slots(size_t number, std::vector<Slot>* slots) {
  int64_t begin = 0;
  int64_t origin = 0;  // of the bucket
  int64_t end = 0;     // of the last parameter
  const int64_t elements = bucket(number).elements;
  while (begin < elements || (bucket(number).is_gathered && end < elements)) {
    SHW_ASSIGN_OR_RETURN(const bool is_pad, is_pad_between(number, end, begin));
    Result<Slot> slot = is_pad ? slot_at(number, begin) : slot_at(number, end);
    if (bucket(number).is_gathered && is_pad && !slot.ok() && end != begin &&
        slot.status().code() == StatusCode::kFailedPrecondition) {
      Result<Slot> next = slot_at(number, end);
      if (next.ok()) slot = std::move(next);
    }
    SHW_RETURN_IF_ERROR(slot.status());
    if (slot->begin == end) origin = end;
    end = slot->begin + slot->elements;
    begin = origin + parameter_place_from(end - origin);
    slots->push_back(*std::move(slot));
  }
  return {};
}

// Several buckets in one run have zeros as their pads, and the next one begins where the last
// parameter ended.
Result<bool> Assignment::is_pad_between(size_t number, int64_t end, int64_t begin) {
  if (!bucket(number).is_gathered || end == begin) return true;
  if (begin >= bucket(number).elements) return false;
  return contents_.are_zeros({bucket(number).states.at(std::string(kMainState)), end, begin - end});
}

// The shortest run that ends with a chunk and is a parameter.
Result<Slot> Assignment::slot_at(size_t number, int64_t begin) {
  Slot slot{number, begin, 0, {}};
  for (const SaidPlace& said : input_.said) {
    if (said.begin != begin || said.bucket != bucket(number).name()) continue;
    const size_t parameter = *said_parameter(said);
    slot.elements = input_.parameters[parameter].elements;
    if (begin + slot.elements > bucket(number).elements)
      return invalid_argument(
          fmt::format("the map says that {} lies in bucket '{}' at {}, which "
                      "ends before it does",
                      text(parameter), bucket(number).name(), begin));
    slot.alike = {parameter};
    return slot;
  }
  for (const auto& [elements, parameters] : by_size_) {
    if (bucket(number).is_gathered
            ? begin + elements > bucket(number).elements
            : !std::ranges::binary_search(bucket(number).bounds, begin + elements))
      continue;
    SHW_ASSIGN_OR_RETURN(slot.alike, parameters_at(number, begin, elements));
    if (slot.alike.empty()) continue;
    slot.elements = elements;
    return slot;
  }
  return at(slot,
            "what lies there, rounded to the dtype of the model, is no stored weight of it "
            "(masters of lower precision, or split ones, cannot be told apart)");
}

Result<std::vector<size_t>> Assignment::parameters_at(size_t number, int64_t begin,
                                                      int64_t elements) {
  const StoredRun run{bucket(number).states.at(std::string(kMainState)), begin, elements};
  std::map<DType, ContentDigest> found;  // one where all parameters have one dtype
  std::vector<size_t> alike;
  for (const size_t p : by_size_[elements]) {
    const DType dtype = input_.parameters[p].dtype;
    if (!found.contains(dtype)) {
      SHW_ASSIGN_OR_RETURN(found[dtype], contents_.of_run(run, dtype));
    }
    SHW_ASSIGN_OR_RETURN(const ContentDigest stored, contents_.of_parameter(p));
    if (stored == found[dtype]) alike.push_back(p);
  }
  return alike;
}

Status Assignment::take(const Slot& slot, size_t parameter, std::set<size_t>* used) {
  if (!used->insert(parameter).second)
    return at(slot,
              fmt::format("{} lies there and in another place of the same ranks", text(parameter)));
  covered_.insert(parameter);
  assigned_.push_back({slot.bucket, slot.begin, parameter});
  return {};
}

// Of one group: what only one parameter can be comes first, and tells the layers of its stage.
Status Assignment::resolve(std::span<const Slot> slots) {
  std::set<size_t> used;
  std::set<int64_t> layers;
  std::map<std::vector<size_t>, std::vector<const Slot*>> several;
  for (const Slot& slot : slots) {
    if (slot.alike.size() != 1) {
      several[slot.alike].push_back(&slot);
      continue;
    }
    SHW_RETURN_IF_ERROR(take(slot, slot.alike[0], &used));
    const auto layer = layer_of(name(slot.alike[0]), box(slot.alike[0]));
    if (layer.has_value()) layers.insert(*layer);
  }
  for (const auto& [alike, group] : several)
    SHW_RETURN_IF_ERROR(resolve_alike(group, &used, layers));
  return {};
}

// Buffers hold parameters in the reverse order of their declaration.
Status Assignment::resolve_alike(std::span<const Slot* const> slots, std::set<size_t>* used,
                                 const std::set<int64_t>& layers) {
  std::vector<std::pair<std::optional<DeclaredPlace>, size_t>> local;
  for (const size_t p : slots[0]->alike) {
    if (used->contains(p)) continue;
    const auto layer = layer_of(name(p), box(p));
    if (layer.has_value() && !layers.empty() && !layers.contains(*layer)) continue;
    local.emplace_back(declared_place(name(p), box(p)), p);
  }
  SHW_ASSIGN_OR_RETURN(const bool any_order, are_equal_in_all_states(slots));
  bool is_ordered = local.size() == slots.size();
  std::ranges::sort(local, std::greater<>());
  for (size_t i = 0; i < local.size(); ++i) {
    is_ordered = is_ordered && local[i].first.has_value();
    is_ordered = is_ordered && (i == 0 || local[i - 1].first != local[i].first);
  }
  if (any_order && !is_ordered) {
    // Whichever lies where, the states are the same; those that no group had yet come first.
    std::ranges::stable_sort(local, [this](const auto& a, const auto& b) {
      return !covered_.contains(a.second) && covered_.contains(b.second);
    });
    is_ordered = local.size() >= slots.size();
  }
  if (!is_ordered) {
    std::string names;
    for (size_t i = 0; i < std::min(slots[0]->alike.size(), kNamedAlike); ++i)
      names += fmt::format("{}{}", i == 0 ? "" : ", ", text(slots[0]->alike[i]));
    return at(*slots[0], fmt::format("{} stored weights are what lies in this and {} further "
                                     "places, and their order is not known: {}{}",
                                     slots[0]->alike.size(), slots.size() - 1, names,
                                     slots[0]->alike.size() > kNamedAlike ? ", ..." : ""));
  }
  for (size_t i = 0; i < slots.size(); ++i)
    SHW_RETURN_IF_ERROR(take(*slots[i], local[i].second, used));
  return {};
}

Result<bool> Assignment::are_equal_in_all_states(std::span<const Slot* const> slots) {
  const Slot& first = *slots[0];
  for (const auto& [state, tensor] : bucket(first.bucket).states) {
    std::optional<ContentDigest> digest;
    for (const Slot* slot : slots) {
      const auto& states = bucket(slot->bucket).states;
      const auto it = states.find(state);
      if (it == states.end()) return false;
      const DType dtype = input_.catalog.tensors[it->second].dtype;
      SHW_ASSIGN_OR_RETURN(const ContentDigest found,
                           contents_.of_run({it->second, slot->begin, slot->elements}, dtype));
      if (digest.has_value() && *digest != found) return false;
      digest = found;
    }
  }
  return true;
}

}  // namespace

Result<std::vector<Assigned>> assign_buckets(const AssignInput& input, Contents* contents) {
  return Assignment(input, contents).run();
}

}  // namespace shardwright::reshard
