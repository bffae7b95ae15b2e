// SPDX-License-Identifier: Apache-2.0
//
// Proof that a catalog from outside keeps the invariants of catalog.h. Columns are checked before
// anything indexes through them: texts, then extents and counts per tensor, then grids and boxes,
// then objects, then names. Splits and rank maps proved themselves when they were made.
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/catalog.h"
#include "core/plan/entry_index_internal.h"
#include "core/plan/findings_internal.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan {
namespace {

class CatalogCheck {
 public:
  CatalogCheck(const Catalog& catalog, size_t limit, uint64_t max_object_bytes)
      : catalog_(catalog), max_object_bytes_(max_object_bytes), findings_(limit) {}

  std::vector<std::string> run() {
    if (check_texts() && check_tensor_records()) {
      check_chunks();
      check_objects();
      if (names_sound_ && !findings_.full()) check_names();
    }
    return findings_.take();
  }

 private:
  bool full() const { return findings_.full(); }

  template <typename... Arguments>
  bool add(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    return findings_.add(format, std::forward<Arguments>(arguments)...);
  }

  // True when texts.at() is safe for every id below texts.size().
  bool check_texts() {
    const std::span<const uint64_t> ends = catalog_.texts.ends();
    if (ends.empty() || ends[0] != 0) return add("text 0 is not empty");
    if (ends.size() > std::numeric_limits<uint32_t>::max())
      return add("there are {} texts", ends.size());
    for (size_t i = 1; i < ends.size(); ++i) {
      if (ends[i] < ends[i - 1])
        return add("text {} ends at {} before it begins at {}", i, ends[i], ends[i - 1]);
    }
    if (ends.back() != catalog_.texts.blob().size()) {
      return add("the texts end at {} of {} bytes", ends.back(), catalog_.texts.blob().size());
    }
    return true;
  }

  bool check_text(std::string_view what, size_t record, TextId id, uint64_t limit) {
    if (id >= catalog_.texts.size())
      return add("{} {} uses text {} of {}", what, record, id, catalog_.texts.size());
    const std::string_view text = catalog_.texts.at(id);
    if (text.size() > limit)
      return add("{} {} has a text of {} bytes, more than {}", what, record, text.size(), limit);
    // Whoever copies the text of each record must not need much more than what was there.
    used_bytes_ += text.size();
    if (used_bytes_ > kMaxTextUses * catalog_.texts.blob().size()) {
      return add(
          "up to {} {} the records use {} bytes of texts, more than {} times the {} there are",
          what, record, used_bytes_, kMaxTextUses, catalog_.texts.blob().size());
    }
    if (!is_valid_utf8(text))
      return add("{} {} has a text that is not UTF-8: {}", what, record, escape_text(text));
    return true;
  }

  bool check_kind(std::string_view what, size_t record, EntryKind kind, int32_t rank) {
    if (kind != EntryKind::kReplicated && kind != EntryKind::kSharded &&
        kind != EntryKind::kRankLocal) {
      return add("{} {} has kind {}", what, record, static_cast<int>(kind));
    }
    const bool owned = kind == EntryKind::kRankLocal;
    if (owned ? rank < 0 || rank >= kMaxWorldSize : rank != -1) {
      return add("{} {} is {} and has owner rank {}", what, record, entry_kind_name(kind), rank);
    }
    return true;
  }

  // True when extents and chunks of every tensor lie inside their columns.
  bool check_tensor_records() {
    if (catalog_.tensors.size() >= std::numeric_limits<uint32_t>::max())
      return add("too many tensors");
    internal::TensorBegins begins;
    for (size_t t = 0; t < catalog_.tensors.size(); ++t) {
      if (!check_tensor_record(t, &begins)) return false;
      check_tensor_values(t, catalog_.tensors[t]);
    }
    const size_t grids = catalog_.grids.size();
    if (begins.shape != catalog_.shapes.size() || begins.box != catalog_.boxes.size() ||
        begins.more != catalog_.more.size() || begins.grid != grids) {
      return add(
          "the tensors use {} of {} extents, {} of {} splits, {} of {} boxes, {} of {} further "
          "pairs",
          begins.shape, catalog_.shapes.size(), begins.grid, grids, begins.box,
          catalog_.boxes.size(), begins.more, catalog_.more.size());
    }
    return findings_.empty();
  }

  bool check_tensor_record(size_t t, internal::TensorBegins* begins) {
    const TensorRecord& tensor = catalog_.tensors[t];
    if (tensor.dimension_count > static_cast<uint32_t>(kMaxTensorRank))
      return add("tensor {} has {} dimensions", t, tensor.dimension_count);
    if (tensor.dimension_count < 64 && (tensor.split_mask >> tensor.dimension_count) != 0) {
      return add("tensor {} of {} dimensions has split mask {:#x}", t, tensor.dimension_count,
                 tensor.split_mask);
    }
    TensorRecord placed = tensor;
    begins->place(&placed);
    if (placed != tensor)
      return add("tensor {} does not begin where tensor {} ends", t, static_cast<int64_t>(t) - 1);
    if (begins->shape > catalog_.shapes.size())
      return add("the shape of tensor {} leaves its column", t);
    if (begins->chunk < tensor.chunk_begin)
      return add("the chunks up to those of tensor {} cannot be counted", t);
    if (tensor.is_grid()) return check_grid(t, tensor);
    // Not more chunks than there are boxes, so that their pairs could be counted.
    if (tensor.chunk_count > catalog_.boxes.size() - tensor.box_begin)
      return add("the boxes of tensor {} leave their column", t);
    if (begins->more > catalog_.more.size())
      return add("the further pairs of tensor {} leave their column", t);
    return true;
  }

  // Splits that fill the shape, and a rank for each chunk.
  bool check_grid(size_t t, const TensorRecord& tensor) {
    const uint32_t count = internal::split_count(tensor);
    if (count > catalog_.grids.size() - tensor.grid_begin)
      return add("the splits of tensor {} leave their column", t);
    if (tensor.rank_map >= catalog_.rank_maps.size()) {
      return add("tensor {} uses rank map {} of {}", t, tensor.rank_map, catalog_.rank_maps.size());
    }
    const internal::SplitDims split = internal::split_dims(catalog_, t);
    uint64_t chunks = split.unsplit_elements == 0 ? 0 : 1;
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t number = catalog_.grids[tensor.grid_begin + k];
      if (number >= catalog_.splits.size())
        return add("tensor {} uses split {} of {}", t, number, catalog_.splits.size());
      const DimSplit& own = catalog_.splits[number];
      if (own.extent() != split.extents[k] || own.part_count() < 2) {
        return add("tensor {} cuts {} elements of {} into {} parts in dimension {}", t,
                   own.extent(), split.extents[k], own.part_count(), split.dims[k]);
      }
      if (!checked_multiply(chunks, own.part_count(), &chunks))
        return add("the chunks of tensor {} cannot be counted", t);
    }
    const uint64_t ranks = catalog_.rank_maps[tensor.rank_map].count();
    if (chunks == 0 || chunks != tensor.chunk_count || chunks != ranks) {
      return add("tensor {} has {} chunks, its splits make {} and its rank map {}", t,
                 tensor.chunk_count, chunks, ranks);
    }
    return true;
  }

  void check_tensor_values(size_t t, const TensorRecord& tensor) {
    check_text("tensor", t, tensor.name, kMaxNameBytes);
    check_text("tensor", t, tensor.path, kMaxPathTextBytes);
    check_kind("tensor", t, tensor.kind, tensor.rank);
    if (!dtype_is_valid(tensor.dtype)) {
      add("tensor {} has dtype number {}", t, static_cast<int>(tensor.dtype));
      return;
    }
    const Result<int64_t> elements = checked_element_count(catalog_.shape(t));
    if (!elements.ok()) {
      add("tensor {}: {}", t, elements.status().message());
      return;
    }
    const Result<uint64_t> bytes = dtype_packed_bytes(tensor.dtype, *elements);
    if (!bytes.ok()) add("tensor {}: {}", t, bytes.status().message());
  }

  void check_chunks() {
    for (size_t t = 0; t < catalog_.tensors.size() && !full(); ++t) {
      const TensorRecord& tensor = catalog_.tensors[t];
      if (tensor.is_grid()) continue;
      const internal::SplitDims split = internal::split_dims(catalog_, t);
      for (uint64_t c = 0; c < tensor.chunk_count && !full(); ++c) check_chunk(t, c, split);
    }
  }

  // c: the number of the box in its tensor.
  void check_chunk(size_t t, uint64_t c, const internal::SplitDims& split) {
    const TensorRecord& tensor = catalog_.tensors[t];
    const ChunkRecord& chunk = catalog_.boxes[tensor.box_begin + c];
    if (chunk.tensor != t) {
      add("box {} belongs to tensor {} but names tensor {}", tensor.box_begin + c, t, chunk.tensor);
      return;
    }
    if (!internal::only_split_pairs(chunk, split)) {
      add("box {} has a pair for a dimension that is not split", tensor.box_begin + c);
      return;
    }
    for (uint32_t k = 0; k < split.count; ++k) {
      const ExtentPair pair = internal::chunk_pair(catalog_, tensor, tensor.chunk_begin + c, k);
      if (internal::is_inside(pair, split.extents[k])) continue;
      add("box {} of tensor {} has {} elements from {} of {} in dimension {}", tensor.box_begin + c,
          t, pair.size, pair.offset, split.extents[k], split.dims[k]);
      return;
    }
  }

  void check_objects() {
    if (catalog_.objects.size() >= std::numeric_limits<uint32_t>::max()) {
      add("too many objects");
      return;
    }
    for (size_t i = 0; i < catalog_.objects.size() && !full(); ++i) {
      const ObjectRecord& object = catalog_.objects[i];
      names_sound_ &= check_text("object", i, object.name, kMaxNameBytes);
      check_text("object", i, object.path, kMaxPathTextBytes);
      // A run of objects shares its content type, which is copied once.
      if (i == 0 || object.content_type != catalog_.objects[i - 1].content_type)
        check_text("object", i, object.content_type, kMaxNameBytes);
      check_kind("object", i, object.kind, object.rank);
      if (object.kind == EntryKind::kSharded) add("object {} is sharded", i);
      if (object.size_bytes > max_object_bytes_)
        add("object {} has {} bytes", i, object.size_bytes);
    }
  }

  // One tensor or object per name and owner.
  void check_names() {
    const auto tensor_key = [this](size_t i) {
      return internal::EntryKey{catalog_.tensor_name(i), catalog_.tensors[i].rank};
    };
    const auto object_key = [this](size_t i) {
      return internal::EntryKey{catalog_.object_name(i), catalog_.objects[i].rank};
    };
    internal::EntryIndex tensors;
    internal::EntryIndex objects;
    check_unique("objects", catalog_.objects.size(), object_key, &objects);
    check_unique("tensors", catalog_.tensors.size(), tensor_key, &tensors);
    for (size_t i = 0; i < catalog_.objects.size() && !full(); ++i) {
      if (tensors.find(object_key(i), tensor_key) < 0) continue;
      add("a tensor and an object are both named '{}'", escape_text(catalog_.object_name(i)));
    }
  }

  template <typename KeyAt>
  void check_unique(std::string_view what, size_t count, const KeyAt& key_at,
                    internal::EntryIndex* index) {
    index->reset(count);
    for (size_t i = 0; i < count && !full(); ++i) {
      const size_t first = index->insert(key_at(i), i, key_at);
      if (first != i) {
        add("{} {} and {} are both named '{}'", what, first, i, escape_text(key_at(i).name));
      }
    }
  }

  const Catalog& catalog_;
  const uint64_t max_object_bytes_;
  uint64_t used_bytes_ = 0;  // of texts, by the records so far
  bool names_sound_ = true;  // of objects; tensor records are sound before names are looked at
  internal::Findings findings_;
};

}  // namespace

std::vector<std::string> catalog_findings(const Catalog& catalog, size_t limit,
                                          uint64_t max_object_bytes) {
  return CatalogCheck(catalog, limit, max_object_bytes).run();
}

Status check_catalog(const Catalog& catalog) {
  const std::vector<std::string> findings = catalog_findings(catalog, 1);
  if (findings.empty()) return {};
  return data_loss(fmt::format("the catalog is damaged: {}", findings.front()));
}

}  // namespace shardwright::plan
