// SPDX-License-Identifier: Apache-2.0
//
// See entries.h.
#include "tests/bindings/c/entries.h"

namespace contract {
namespace {

constexpr size_t kDigestBytes = 16;

int32_t dtype_number(const std::string& name) {
  int32_t number = 0;
  shw_error* error = nullptr;
  check(shw_dtype_parse(name.c_str(), &number, &error), &error);
  return number;
}

Bytes content_digest(const std::string& text) {
  shw_buffer* made = nullptr;
  shw_error* error = nullptr;
  check(shw_content_digest(text.data(), text.size(), &made, &error), &error);
  const Buffer buffer(made);
  const auto* bytes = static_cast<const uint8_t*>(shw_buffer_data(made));
  return {bytes, bytes + shw_buffer_size(made)};
}

void append(std::vector<int64_t>* all, const std::vector<int64_t>& values) {
  all->insert(all->end(), values.begin(), values.end());
}

std::string joined(const int64_t* values, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? " " : ",") + std::to_string(values[i]);
  return text;
}

// What all boxes of entry i have in front.
std::string head_of(const shw_entry_batch& batch, uint64_t i) {
  static const char* const kKinds[] = {"auto", "replicated", "sharded", "rank_local"};
  const uint64_t begin = batch.name_offsets[i];
  std::string text(batch.names + begin, batch.name_offsets[i + 1] - begin);
  text += ' ';
  text += batch.dtypes[i] == 0 ? "object" : shw_dtype_name(batch.dtypes[i]);
  return text + ' ' + kKinds[batch.kinds[i]];
}

shw_entry_batch entries_of(const shw_plan* plan) {
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  shw_error* error = nullptr;
  check(shw_plan_entries(plan, &batch, &error), &error);
  return batch;
}

}  // namespace

void Texts::add(const std::string& text) {
  blob += text;
  offsets.push_back(blob.size());
}

Entries::Entries(const Json& step) {
  for (const Json& entry : member(step, "entries")) add(entry);
  for (const int64_t box : numbers_of(member(step, "order")))
    order_.push_back(static_cast<uint64_t>(box));
  if (!step.contains("secondary")) return;
  secondary_.assign(box_ranges_.back(), 0);
  for (const int64_t box : numbers_of(member(step, "secondary")))
    secondary_.at(static_cast<size_t>(box)) = 1;
}

void Entries::add(const Json& entry) {
  const std::vector<int64_t> shape = numbers_of(member(entry, "shape"));
  names_.add(text_of(entry, "name"));
  paths_.add(text_of(entry, "path"));
  attributes_.add(text_of(entry, "attributes"));
  dtypes_.push_back(entry.contains("dtype") ? dtype_number(text_of(entry, "dtype")) : 0);
  kinds_.push_back(word_of("kind", entry.value("kind", "auto")));
  sizes_.push_back(entry.value("size", uint64_t{0}));
  append(&shapes_, shape);
  shape_offsets_.push_back(shapes_.size());
  add_boxes(entry, shape);
  const Bytes digest = entry.contains("content") ? content_digest(text_of(entry, "content"))
                                                 : Bytes(kDigestBytes, 0);
  digests_.insert(digests_.end(), digest.begin(), digest.end());
}

// Boxes that are not listed are the whole tensor, or those of its layout.
void Entries::add_boxes(const Json& entry, const std::vector<int64_t>& shape) {
  uint64_t count = 0;
  if (entry.contains("boxes")) {
    for (const Json& box : entry["boxes"]) {
      append(&box_offsets_, numbers_of(box[0]));
      append(&box_sizes_, numbers_of(box[1]));
      ++count;
    }
  } else if (!entry.contains("layout")) {
    append(&box_offsets_, std::vector<int64_t>(shape.size(), 0));
    append(&box_sizes_, shape);
    count = 1;
  }
  box_ranges_.push_back(box_ranges_.back() + count);
}

shw_entry_batch Entries::batch() const {
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  batch.count = dtypes_.size();
  batch.names = names_.blob.data();
  batch.name_offsets = names_.offsets.data();
  batch.dtypes = dtypes_.data();
  batch.kinds = kinds_.data();
  batch.shapes = shapes_.data();
  batch.shape_offsets = shape_offsets_.data();
  batch.box_ranges = box_ranges_.data();
  batch.box_offsets = box_offsets_.data();
  batch.box_sizes = box_sizes_.data();
  batch.order = order_.empty() ? nullptr : order_.data();
  batch.secondary = secondary_.empty() ? nullptr : secondary_.data();
  batch.object_sizes = sizes_.data();
  batch.paths = paths_.blob.data();
  batch.path_offsets = paths_.offsets.data();
  if (!attributes_.blob.empty()) {
    batch.attributes = attributes_.blob.data();
    batch.attribute_offsets = attributes_.offsets.data();
  }
  batch.digests = digests_.data();
  return batch;
}

std::vector<std::string> box_lines(const shw_plan* plan) {
  const shw_entry_batch batch = entries_of(plan);
  std::vector<std::string> lines;
  size_t at = 0;
  for (uint64_t i = 0; i < batch.count; ++i) {
    const size_t ndim = batch.shape_offsets[i + 1] - batch.shape_offsets[i];
    for (uint64_t box = batch.box_ranges[i]; box < batch.box_ranges[i + 1]; ++box) {
      std::string line = head_of(batch, i) + joined(batch.box_offsets + at, ndim) +
                         joined(batch.box_sizes + at, ndim);
      lines.push_back(line + " #" + std::to_string(batch.numbers[box]));
      at += ndim;
    }
  }
  return lines;
}

std::vector<std::string> kept_names(const shw_plan* plan, const std::vector<uint32_t>& numbers) {
  const shw_entry_batch batch = entries_of(plan);
  if (numbers.size() != batch.box_ranges[batch.count])
    throw std::runtime_error(std::to_string(numbers.size()) + " numbers of " +
                             std::to_string(batch.box_ranges[batch.count]) + " boxes");
  std::vector<std::string> names;
  for (uint64_t i = 0; i < batch.count; ++i) {
    const std::string name(batch.names + batch.name_offsets[i],
                           batch.names + batch.name_offsets[i + 1]);
    for (uint64_t box = batch.box_ranges[i]; box < batch.box_ranges[i + 1]; ++box) {
      if (numbers[box] != SHW_NOT_KEPT) names.push_back(name + "#" + std::to_string(numbers[box]));
    }
  }
  return names;
}

}  // namespace contract
