// SPDX-License-Identifier: Apache-2.0
#include "core/state/mapping_steps_internal.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright::internal {
namespace {

Status wrong(std::string_view member, std::string_view what) {
  return invalid_argument(fmt::format("{}: {}", member, what)).with_detail("parameter", member);
}

// The axis counted from the front, or a failure; `axes` is how many there are to choose from.
Result<size_t> axis_of(int32_t axis, size_t axes, std::string_view member) {
  const auto count = static_cast<int64_t>(axes);
  const int64_t from_front = axis < 0 ? axis + count : axis;
  if (from_front >= 0 && from_front < count) return static_cast<size_t>(from_front);
  return wrong(member, fmt::format("there is no axis {} among {}", axis, count));
}

Status check_count(int64_t count, std::string_view member) {
  if (count >= 1) return {};
  return wrong(member, fmt::format("{} is not positive", count));
}

Status check_sizes(std::span<const int64_t> sizes, std::string_view member) {
  for (const int64_t size : sizes) SHW_RETURN_IF_ERROR(check_count(size, member));
  if (checked_element_count(sizes).ok()) return {};  // so their sum fits, too
  return wrong(member, "the sizes are too large");
}

Status check_index(const MappingIndex& index, const NamePattern& pattern, std::string_view member) {
  if (index.value < 0) return wrong(member, fmt::format("{} is negative", index.value));
  if (index.capture == 0 || pattern.captures_number(index.capture)) return {};
  return wrong(member, fmt::format("capture {} of the pattern is no number ('#')", index.capture));
}

Result<int64_t> index_of(const MappingIndex& index, const Captures& captures, int64_t count,
                         std::string_view member) {
  int64_t value = 0;
  if (index.capture != 0) {
    Result<int64_t> captured = captured_number(captures[index.capture - 1]);
    if (!captured.ok()) return wrong(member, captured.status().message());
    value = *captured;
  }
  if (value < count && index.value < count - value) return value + index.value;
  return out_of_range(fmt::format("{}: {} is not below {}", member,
                                  index.value == 0 ? fmt::to_string(value)
                                                   : fmt::format("{} + {}", value, index.value),
                                  count))
      .with_detail("parameter", member);
}

int64_t parts_of(const SplitStep& step) {
  if (!step.sizes.empty()) return static_cast<int64_t>(step.sizes.size());
  return step.count != 0 ? step.count : static_cast<int64_t>(step.suffixes.size());
}

Status check_step(const SplitStep& step, const NamePattern&) {
  SHW_RETURN_IF_ERROR(check_sizes(step.sizes, "split.sizes"));
  const int64_t parts = parts_of(step);
  SHW_RETURN_IF_ERROR(check_count(parts, "split.count"));
  if (parts > kMaxPiecesPerRank)
    return wrong("split.count", fmt::format("{} parts are too many", parts));
  if (step.count != 0 && step.count != parts)
    return wrong("split.count", fmt::format("{} parts, but {} sizes", step.count, parts));
  if (!step.suffixes.empty() && static_cast<int64_t>(step.suffixes.size()) != parts) {
    return wrong("split.suffixes",
                 fmt::format("{} suffixes for {} parts", step.suffixes.size(), parts));
  }
  for (const std::string& suffix : step.suffixes) {
    if (!is_valid_utf8(suffix)) return wrong("split.suffixes", "a suffix is not valid UTF-8");
  }
  if (std::set<std::string>(step.suffixes.begin(), step.suffixes.end()).size() !=
      step.suffixes.size()) {
    return wrong("split.suffixes", "two parts have the same suffix");
  }
  if (!step.suffixes.empty() && !step.name.empty())
    return wrong("split.name", "parts have suffixes or names, not both");
  if (step.whole_tensor && step.suffixes.empty() && step.name.empty())
    return wrong("split.of", "parts of the tensor without names of their own change nothing");
  return {};
}

Status check_step(const ConcatStep& step, const NamePattern& pattern) {
  SHW_RETURN_IF_ERROR(check_sizes(step.sizes, "concat.sizes"));
  const int64_t parts = step.sizes.empty() ? step.count : static_cast<int64_t>(step.sizes.size());
  SHW_RETURN_IF_ERROR(check_count(parts, "concat.count"));
  if (step.count != 0 && step.count != parts)
    return wrong("concat.count", fmt::format("{} parts, but {} sizes", step.count, parts));
  return check_index(step.index, pattern, "concat.index");
}

Status check_step(const InsertAxisStep& step, const NamePattern& pattern) {
  SHW_RETURN_IF_ERROR(check_count(step.count, "insert_axis.count"));
  return check_index(step.index, pattern, "insert_axis.index");
}

Status check_step(const PadStep& step, const NamePattern&) {
  SHW_RETURN_IF_ERROR(check_count(step.size, "pad.size"));
  if (step.real >= 0 && step.real <= step.size) return {};
  return wrong("pad.real", fmt::format("{} of {} elements", step.real, step.size));
}

Status check_step(const RenameStep&, const NamePattern&) {
  return {};
}

Status check_step(const DropAxisStep&, const NamePattern&) {
  return {};
}

// Where the parts of an axis of this extent begin, and its end.
Result<std::vector<int64_t>> part_bounds(int64_t extent, int64_t parts,
                                         std::span<const int64_t> sizes, std::string_view member) {
  std::vector<int64_t> bounds{0};
  if (sizes.empty() && extent % parts != 0)
    return wrong(member, fmt::format("{} elements are not {} equal parts", extent, parts));
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t size = sizes.empty() ? extent / parts : sizes[static_cast<size_t>(part)];
    bounds.push_back(bounds.back() + size);
  }
  if (bounds.back() == extent) return bounds;
  return wrong(member, fmt::format("the sizes add up to {}, the axis has {} elements",
                                   bounds.back(), extent));
}

int64_t source_axis(const MappedBox& box, size_t axis) {
  return box.axes[axis];
}

// Keeps [begin, end) of the box along an axis, in coordinates of its tensor.
void narrow(size_t axis, int64_t begin, int64_t end, MappedBox* box) {
  const int64_t from = source_axis(*box, axis);
  if (from >= 0) {
    box->source.offsets[static_cast<size_t>(from)] += begin - box->box.offsets[axis];
    box->source.sizes[static_cast<size_t>(from)] = end - begin;
  }
  box->box.offsets[axis] = begin;
  box->box.sizes[axis] = end - begin;
}

Dims with_value_at(const Dims& dims, size_t axis, int64_t value) {
  Dims out(dims.size() + 1, value);
  std::copy_n(dims.begin(), axis, out.begin());
  std::copy(dims.begin() + axis, dims.end(), out.begin() + axis + 1);
  return out;
}

Dims without_axis(const Dims& dims, size_t axis) {
  Dims out(dims.size() - 1, 0);
  std::copy_n(dims.begin(), axis, out.begin());
  std::copy(dims.begin() + axis + 1, dims.end(), out.begin() + axis);
  return out;
}

Status too_many() {
  return resource_exhausted("boxes",
                            fmt::format("an entry becomes more than {} boxes", kMaxPiecesPerRank));
}

// What all parts of a split share.
struct Splitting {
  const CompiledStep& compiled;
  const SplitStep& step;
  const Captures& captures;
  size_t axis = 0;
  std::vector<int64_t> bounds;  // of the parts in the whole axis

  bool named() const { return !step.suffixes.empty() || !step.name.empty(); }

  void name_part(size_t part, MovingBox* box) const {
    if (!step.suffixes.empty()) box->suffix += step.suffixes[part];
    if (!step.name.empty()) box->name = compiled.form.fill(captures, static_cast<int64_t>(part));
  }
};

// Parts that are consecutive in the tensor; each has a name.
void split_tensor(const Splitting& split, const MovingBox& from, std::vector<MovingBox>* out) {
  const size_t axis = split.axis;
  const int64_t begin = from.mapped.box.offsets[axis];
  const int64_t end = begin + from.mapped.box.sizes[axis];
  const int64_t fragments = from.mapped.fragments[axis];
  const int64_t block = fragments > 0 ? from.mapped.global_shape[axis] / fragments : 0;
  for (size_t part = 0; part + 1 < split.bounds.size(); ++part) {
    const int64_t first = split.bounds[part];
    const int64_t size = split.bounds[part + 1] - first;
    const int64_t low = std::max(begin, first);
    const int64_t high = std::min(end, first + size);
    if (low >= high) continue;
    MovingBox& box = out->emplace_back(from);
    narrow(axis, low, high, &box.mapped);
    box.mapped.box.offsets[axis] -= first;
    box.mapped.global_shape[axis] = size;
    const bool whole = high - low == size;
    const bool blocks = block > 0 && size % block == 0 && first % block == 0;
    box.mapped.fragments[axis] = blocks ? size / block : (whole ? 1 : 0);
    split.name_part(part, &box);
  }
}

// Each part of the grid holds a share of each part.
Status split_grid(const Splitting& split, const MovingBox& from, std::vector<MovingBox>* out) {
  const size_t axis = split.axis;
  const int64_t extent = from.mapped.global_shape[axis];
  const int64_t fragments = from.mapped.fragments[axis];
  if (fragments <= 0) {
    return wrong("split.axis",
                 fmt::format("the box {} is none of equal parts of axis {}; say into how many the "
                             "axis is cut",
                             box_text(from.mapped.box), axis));
  }
  const int64_t block = extent / fragments;
  const int64_t begin = from.mapped.box.offsets[axis];
  const int64_t end = begin + from.mapped.box.sizes[axis];
  for (size_t part = 0; part + 1 < split.bounds.size(); ++part) {
    const int64_t size = split.bounds[part + 1] - split.bounds[part];
    if (size % fragments != 0) {
      return wrong(
          split.step.sizes.empty() ? "split.count" : "split.sizes",
          fmt::format("a part of {} elements does not fall into {} equal shares", size, fragments));
    }
    const int64_t share = size / fragments;
    for (int64_t at = begin / block; at * block < end; ++at) {
      const int64_t first = at * block + split.bounds[part] / fragments;
      const int64_t low = std::max(begin, first);
      const int64_t high = std::min(end, first + share);
      if (low >= high) continue;
      if (out->size() >= static_cast<size_t>(kMaxPiecesPerRank)) return too_many();
      MovingBox& box = out->emplace_back(from);
      narrow(axis, low, high, &box.mapped);
      const int64_t place = split.named() ? 0 : split.bounds[part];
      box.mapped.box.offsets[axis] = place + at * share + (low - first);
      if (split.named()) {
        box.mapped.global_shape[axis] = size;
      } else {
        const auto parts = static_cast<int64_t>(split.bounds.size() - 1);
        box.mapped.fragments[axis] = split.step.sizes.empty() ? fragments * parts : 0;
      }
      split.name_part(part, &box);
    }
  }
  return {};
}

Status apply(const CompiledStep& compiled, const SplitStep& step, const Captures& captures,
             const MovingBox& from, std::vector<MovingBox>* out) {
  const Dims& shape = from.mapped.global_shape;
  SHW_ASSIGN_OR_RETURN(const size_t axis, axis_of(step.axis, shape.size(), "split.axis"));
  SHW_ASSIGN_OR_RETURN(std::vector<int64_t> bounds,
                       part_bounds(shape[axis], parts_of(step), step.sizes,
                                   step.sizes.empty() ? "split.count" : "split.sizes"));
  const Splitting split{compiled, step, captures, axis, std::move(bounds)};
  if (!step.whole_tensor) return split_grid(split, from, out);
  split_tensor(split, from, out);
  return {};
}

Status apply(const CompiledStep&, const ConcatStep& step, const Captures& captures, MovingBox from,
             std::vector<MovingBox>* out) {
  MappedBox& mapped = from.mapped;
  SHW_ASSIGN_OR_RETURN(const size_t axis,
                       axis_of(step.axis, mapped.global_shape.size(), "concat.axis"));
  const int64_t extent = mapped.global_shape[axis];
  const int64_t parts = step.sizes.empty() ? step.count : static_cast<int64_t>(step.sizes.size());
  SHW_ASSIGN_OR_RETURN(const int64_t index, index_of(step.index, captures, parts, "concat.index"));
  int64_t total = 0;
  int64_t before = 0;
  if (step.sizes.empty()) {
    if (!checked_multiply(extent, parts, &total))
      return wrong("concat.count", "the axis becomes too long");
    before = extent * index;
    mapped.fragments[axis] *= parts;
  } else {
    const auto at = static_cast<size_t>(index);
    if (step.sizes[at] != extent) {
      return wrong("concat.sizes", fmt::format("part {} has {} elements, the axis {}", index,
                                               step.sizes[at], extent));
    }
    for (size_t i = 0; i < step.sizes.size(); ++i) {
      total += step.sizes[i];
      if (i < at) before += step.sizes[i];
    }
    mapped.fragments[axis] = 0;
  }
  mapped.global_shape[axis] = total;
  mapped.box.offsets[axis] += before;
  out->push_back(std::move(from));
  return {};
}

Status apply(const CompiledStep& compiled, const RenameStep&, const Captures& captures,
             MovingBox from, std::vector<MovingBox>* out) {
  from.name = compiled.form.fill(captures, 0);
  out->push_back(std::move(from));
  return {};
}

Status apply(const CompiledStep&, const InsertAxisStep& step, const Captures& captures,
             MovingBox from, std::vector<MovingBox>* out) {
  MappedBox& mapped = from.mapped;
  const size_t rank = mapped.global_shape.size();
  if (rank == static_cast<size_t>(kMaxTensorRank))
    return wrong("insert_axis.axis", fmt::format("a tensor has at most {} axes", kMaxTensorRank));
  SHW_ASSIGN_OR_RETURN(const size_t axis, axis_of(step.axis, rank + 1, "insert_axis.axis"));
  SHW_ASSIGN_OR_RETURN(const int64_t index,
                       index_of(step.index, captures, step.count, "insert_axis.index"));
  mapped.global_shape = with_value_at(mapped.global_shape, axis, step.count);
  mapped.fragments = with_value_at(mapped.fragments, axis, step.count);
  mapped.box.offsets = with_value_at(mapped.box.offsets, axis, index);
  mapped.box.sizes = with_value_at(mapped.box.sizes, axis, 1);
  mapped.axes = with_value_at(mapped.axes, axis, -1);
  out->push_back(std::move(from));
  return {};
}

Status apply(const CompiledStep& compiled, const DropAxisStep& step, const Captures& captures,
             const MovingBox& from, std::vector<MovingBox>* out) {
  SHW_ASSIGN_OR_RETURN(const size_t axis,
                       axis_of(step.axis, from.mapped.global_shape.size(), "drop_axis.axis"));
  const int64_t begin = from.mapped.box.offsets[axis];
  const int64_t count = from.mapped.box.sizes[axis];
  if (count > kMaxPiecesPerRank - static_cast<int64_t>(out->size())) return too_many();
  for (int64_t index = begin; index < begin + count; ++index) {
    MovingBox& box = out->emplace_back(from);
    narrow(axis, index, index + 1, &box.mapped);
    box.name = compiled.form.fill(captures, index);
    MappedBox& mapped = box.mapped;
    mapped.global_shape = without_axis(mapped.global_shape, axis);
    mapped.fragments = without_axis(mapped.fragments, axis);
    mapped.box.offsets = without_axis(mapped.box.offsets, axis);
    mapped.box.sizes = without_axis(mapped.box.sizes, axis);
    mapped.axes = without_axis(mapped.axes, axis);
  }
  return {};
}

Status check_real(const PadStep& step, int64_t held) {
  if (held >= (step.real == 0 ? step.size : step.real)) return {};
  if (step.real == 0) {
    return wrong(
        "pad.size",
        fmt::format("the axis has {} of {} elements; \"real\" says how many of them are no "
                    "padding",
                    held, step.size));
  }
  return wrong("pad.real",
               fmt::format("the axis has {} of {} elements that are no padding", held, step.real));
}

Status apply(const CompiledStep&, const PadStep& step, const Captures&, const MovingBox& from,
             std::vector<MovingBox>* out) {
  SHW_ASSIGN_OR_RETURN(const size_t axis,
                       axis_of(step.axis, from.mapped.global_shape.size(), "pad.axis"));
  const int64_t held = from.mapped.global_shape[axis];
  SHW_RETURN_IF_ERROR(check_real(step, held));
  const int64_t begin = from.mapped.box.offsets[axis];
  const int64_t end = begin + from.mapped.box.sizes[axis];
  const auto add = [&](int64_t first, int64_t last, BoxRole role) {
    if (first >= last) return;
    MappedBox& mapped = out->emplace_back(from).mapped;
    if (held != step.size) {
      mapped.fragments[axis] = last - first == step.size ? 1 : 0;
      mapped.global_shape[axis] = step.size;
    }
    narrow(axis, first, last, &mapped);
    mapped.role = role;
  };
  add(begin, std::min(end, step.size), from.mapped.role);
  // Whoever holds the last elements stores the zeros behind them.
  if (end == held) add(held, step.size, BoxRole::kZeros);
  if (from.mapped.role == BoxRole::kStored) add(std::max(begin, step.size), end, BoxRole::kLeftOut);
  return {};
}

constexpr std::array<std::string_view, std::variant_size_v<MappingStep>> kStepNames = {
    "split", "concat", "rename", "insert_axis", "drop_axis", "pad"};

}  // namespace

std::string_view step_name(const MappingStep& step) {
  return kStepNames[step.index()];
}

Result<CompiledStep> compile_step(const MappingStep& step, const NamePattern& pattern) {
  SHW_RETURN_IF_ERROR(
      std::visit([&](const auto& each) { return check_step(each, pattern); }, step));
  CompiledStep compiled;
  compiled.step = step;
  const std::string* text = nullptr;
  if (const auto* rename = std::get_if<RenameStep>(&step)) text = &rename->name;
  if (const auto* drop = std::get_if<DropAxisStep>(&step)) text = &drop->name;
  if (const auto* split = std::get_if<SplitStep>(&step); split != nullptr && !split->name.empty())
    text = &split->name;
  if (text == nullptr) return compiled;
  const bool counts = !std::holds_alternative<RenameStep>(step);
  Result<NameForm> form = NameForm::parse(*text, pattern.capture_count(), counts);
  const std::string member =
      counts ? fmt::format("{}.name", step_name(step)) : std::string(step_name(step));
  if (!form.ok()) return wrong(member, form.status().message());
  compiled.form = *std::move(form);
  return compiled;
}

Status apply_step(const CompiledStep& step, const Captures& captures,
                  std::vector<MovingBox>* boxes) {
  std::vector<MovingBox> out;
  for (const MovingBox& box : *boxes) {
    if (box.mapped.role == BoxRole::kLeftOut) {
      out.push_back(box);
      continue;
    }
    SHW_RETURN_IF_ERROR(std::visit(
        [&](const auto& each) { return apply(step, each, captures, box, &out); }, step.step));
  }
  *boxes = std::move(out);
  return {};
}

}  // namespace shardwright::internal
