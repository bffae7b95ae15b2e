// SPDX-License-Identifier: Apache-2.0
//
// Pictures of how tensors are cut. Tensors with equal dtype, shape, layout and a name that differs
// in numbers only are one group; its first tensor is drawn.
#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

constexpr int64_t kMaxShownNumber = 1'000'000'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
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

// A distinct box with its holders.
struct DrawnBox {
  const Box* box = nullptr;
  int32_t owner = -1;
  uint64_t holders = 0;
};

std::vector<DrawnBox> drawn_boxes(const JobTensor& tensor, const HeldCells& cells,
                                  const OwnerOf& owner_of) {
  std::vector<DrawnBox> drawn(cells.boxes.size());
  for (size_t b = 0; b < drawn.size(); ++b) {
    drawn[b].box = &cells.boxes[b];
    drawn[b].owner = owner_of(tensor.name, cells.boxes[b]);
  }
  for (size_t i = 0; i < cells.ranks.size(); ++i) {
    for (const uint32_t cell : cells.of(i)) {
      if (drawn[cell].owner < 0) drawn[cell].owner = cells.ranks[i];
      ++drawn[cell].holders;
    }
  }
  return drawn;
}

// Parts of one dimension: the offsets at which boxes begin.
class DimensionParts {
 public:
  DimensionParts() = default;
  DimensionParts(const std::vector<DrawnBox>& boxes, size_t dim) : dim_(static_cast<int32_t>(dim)) {
    for (const DrawnBox& each : boxes) offsets_.push_back(each.box->offsets[dim]);
    std::ranges::sort(offsets_);
    const auto rest = std::ranges::unique(offsets_);
    offsets_.erase(rest.begin(), rest.end());
  }
  int32_t dim() const { return dim_; }
  size_t parts() const { return std::max<size_t>(offsets_.size(), 1); }
  size_t cells() const { return std::min(parts(), kMaxPictureSide); }
  size_t cell_of(const Box& box) const {
    if (dim_ < 0) return 0;
    const auto at = std::ranges::lower_bound(offsets_, box.offsets[static_cast<size_t>(dim_)]);
    return static_cast<size_t>(at - offsets_.begin()) * cells() / parts();
  }

 private:
  int32_t dim_ = -1;
  std::vector<int64_t> offsets_;
};

void draw(const std::vector<DrawnBox>& boxes, TensorPicture* picture) {
  DimensionParts rows;
  DimensionParts columns;
  for (size_t d = 0; d < picture->shape.size() && columns.dim() < 0; ++d) {
    const DimensionParts parts(boxes, d);
    if (parts.parts() < 2) continue;
    (rows.dim() < 0 ? rows : columns) = parts;
  }
  if (rows.dim() > 0 && columns.dim() < 0) std::swap(rows, columns);  // columns are cut, not rows
  picture->row_dim = rows.dim();
  picture->column_dim = columns.dim();
  picture->row_parts = rows.parts();
  picture->column_parts = columns.parts();
  picture->rows = rows.cells();
  picture->columns = columns.cells();
  picture->cells.resize(picture->rows * picture->columns);
  for (const DrawnBox& each : boxes) {
    PictureCell& cell =
        picture->cells[rows.cell_of(*each.box) * picture->columns + columns.cell_of(*each.box)];
    const bool first = cell.chunks++ == 0;
    cell.first_owner = first ? each.owner : std::min(cell.first_owner, each.owner);
    cell.last_owner = first ? each.owner : std::max(cell.last_owner, each.owner);
    cell.fewest_holders = first ? each.holders : std::min(cell.fewest_holders, each.holders);
    cell.most_holders = std::max(cell.most_holders, each.holders);
  }
}

TensorPicture picture_of(const Group& group, const JobDescription& job) {
  const JobTensor& tensor = *group.first;
  TensorPicture picture;
  picture.names = names_text(group);
  picture.first_name = tensor.name;
  picture.tensor_count = group.count;
  picture.dtype = tensor.dtype;
  picture.kind = tensor.kind;
  picture.shape = tensor.shape;
  if (tensor.layout != kHeldByBoxes) picture.layout = job.layouts[tensor.layout].text;
  picture.tensor_bytes = box_bytes(tensor.dtype, whole_box(tensor.shape));
  return picture;
}

}  // namespace

Result<std::vector<TensorPicture>> pictures_of(const JobDescription& job, const OwnerOf& owner_of) {
  std::vector<Group> groups = group_tensors(job);
  std::vector<TensorPicture> pictures;
  HeldCellsCache cache(job);
  for (const Group& group : groups) {
    TensorPicture picture = picture_of(group, job);
    SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cache.of(*group.first));
    const std::vector<DrawnBox> boxes = drawn_boxes(*group.first, *cells, owner_of);
    picture.chunks = boxes.size();
    for (const DrawnBox& each : boxes) {
      const uint64_t bytes = box_bytes(picture.dtype, *each.box);
      const bool first = &each == &boxes.front();
      picture.smallest_bytes = first ? bytes : std::min(picture.smallest_bytes, bytes);
      picture.largest_bytes = std::max(picture.largest_bytes, bytes);
      picture.fewest_holders =
          first ? each.holders : std::min(picture.fewest_holders, each.holders);
      picture.most_holders = std::max(picture.most_holders, each.holders);
    }
    if (pictures.size() < kMaxPictures) draw(boxes, &picture);
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace shardwright::estimate::internal
