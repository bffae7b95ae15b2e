// SPDX-License-Identifier: Apache-2.0
//
// Groups of tensors that are cut alike, and the chunks of the first of each.
#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

constexpr int64_t kMaxShownNumber = 1'000'000'000;
bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// A name cut at its numbers that stand alone, such as "layers.12.w": texts around them.
struct NumberedName {
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;  // one fewer than texts
};

NumberedName numbered(std::string_view name) {
  NumberedName made;
  made.texts.emplace_back();
  for (size_t i = 0; i < name.size();) {
    size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    const bool alone = end > i && end - i < 9 && (i == 0 || !is_word(name[i - 1])) &&
                       (end == name.size() || !is_word(name[end]));
    if (alone) {
      made.numbers.push_back(std::stoll(std::string(name.substr(i, end - i))));
      made.texts.emplace_back();
      i = end;
    } else {
      end = std::max(end, i + 1);
      made.texts.back().append(name.substr(i, end - i));
      i = end;
    }
  }
  return made;
}

struct NumberRange {
  int64_t low = kMaxShownNumber;
  int64_t high = -1;
};

struct Group {
  const JobTensor* first = nullptr;
  size_t count = 0;
  std::vector<std::string> texts;
  std::vector<NumberRange> numbers;
};

std::string names_text(const Group& group) {
  std::string text = group.texts[0];
  for (size_t i = 0; i < group.numbers.size(); ++i) {
    const NumberRange& range = group.numbers[i];
    text += range.low == range.high ? fmt::to_string(range.low)
                                    : fmt::format("{{{}..{}}}", range.low, range.high);
    text += group.texts[i + 1];
  }
  return text;
}

std::vector<Group> group_tensors(const JobDescription& job) {
  std::vector<Group> groups;
  std::unordered_map<std::string, size_t> known;
  for (const JobTensor& tensor : job.tensors) {
    NumberedName name = numbered(tensor.name);
    std::string key = fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}", fmt::join(name.texts, "\x1e"),
                                  static_cast<int>(tensor.dtype), static_cast<int>(tensor.kind),
                                  fmt::join(tensor.shape, ","), tensor.boxes.size());
    if (tensor.layout != kHeldByBoxes) key += job.layouts[tensor.layout].text;
    for (const HeldBox& held : tensor.boxes) {
      key += fmt::format("\x1f{}:{}", fmt::join(held.box.offsets, ","),
                         fmt::join(held.box.sizes, ","));
    }
    const auto [at, added] = known.emplace(std::move(key), groups.size());
    if (added) {
      groups.emplace_back();
      groups.back().first = &tensor;
      groups.back().texts = name.texts;
      groups.back().numbers.resize(name.numbers.size());
    }
    Group& group = groups[at->second];
    ++group.count;
    for (size_t i = 0; i < name.numbers.size(); ++i) {
      group.numbers[i].low = std::min(group.numbers[i].low, name.numbers[i]);
      group.numbers[i].high = std::max(group.numbers[i].high, name.numbers[i]);
    }
  }
  return groups;
}

TensorGroup described(const Group& group, const JobDescription& job) {
  const JobTensor& tensor = *group.first;
  TensorGroup made;
  made.names = names_text(group);
  made.first_name = tensor.name;
  made.tensor_count = group.count;
  made.dtype = tensor.dtype;
  made.kind = tensor.kind;
  made.shape = tensor.shape;
  if (tensor.layout != kHeldByBoxes) made.layout = job.layouts[tensor.layout].text;
  made.tensor_bytes = box_bytes(tensor.dtype, whole_box(tensor.shape));
  return made;
}

// Ranks that hold each distinct box.
std::vector<uint64_t> holders_of(const HeldCells& cells) {
  std::vector<uint64_t> holders(cells.boxes.size(), 0);
  for (const uint32_t cell : cells.cells) ++holders[cell];
  return holders;
}

void count_chunks(const HeldCells& cells, std::span<const uint64_t> holders, TensorGroup* group) {
  group->chunk_count = holders.size();
  if (holders.empty()) return;
  const auto [fewest, most] = std::ranges::minmax(holders);
  group->fewest_holders = fewest;
  group->most_holders = most;
  group->smallest_bytes = group->tensor_bytes;
  for (const Box& box : cells.boxes) {
    const uint64_t bytes = box_bytes(group->dtype, box);
    group->smallest_bytes = std::min(group->smallest_bytes, bytes);
    group->largest_bytes = std::max(group->largest_bytes, bytes);
  }
}

void list_chunks(const HeldCells& cells, std::span<const uint64_t> holders, const OwnerOf& owner_of,
                 TensorGroup* group) {
  for (size_t b = 0; b < holders.size(); ++b)
    group->chunks.push_back(
        {cells.boxes[b], owner_of(group->first_name, cells.boxes[b]), holders[b]});
  for (size_t i = 0; i < cells.ranks.size(); ++i) {
    for (const uint32_t cell : cells.of(i)) {
      if (group->chunks[cell].rank < 0) group->chunks[cell].rank = cells.ranks[i];
    }
  }
}

}  // namespace

Result<std::vector<TensorGroup>> tensor_groups_of(const JobDescription& job, uint64_t limit,
                                                  const OwnerOf& owner_of) {
  std::vector<TensorGroup> made;
  HeldCellsCache cache(job);
  for (const Group& group : group_tensors(job)) {
    TensorGroup& each = made.emplace_back(described(group, job));
    SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cache.of(*group.first));
    const std::vector<uint64_t> holders = holders_of(*cells);
    count_chunks(*cells, holders, &each);
    if (holders.size() > limit) continue;
    limit -= holders.size();
    list_chunks(*cells, holders, owner_of, &each);
  }
  return made;
}

}  // namespace shardwright::estimate::internal
