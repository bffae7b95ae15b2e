// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of a description and of a part must mean.
#include <bit>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/box_list_internal.h"
#include "core/plan/digest.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/symbolic_description.h"

namespace shardwright::plan {
namespace {

using Findings = std::vector<std::string>;

// Extents and dims of a layout; the dimension count of a tensor comes later.
void check_layouts(const SymbolicDescription& description, Findings* findings) {
  uint32_t begin = 0;
  for (size_t i = 0; i < description.layout_ends.size(); ++i) {
    const uint32_t end = description.layout_ends[i];
    if (end <= begin || end - begin > kMaxShardAxes || end > description.axes.size()) {
      findings->push_back(fmt::format("layout {} has the axes {} to {} of {}", i, begin, end,
                                      description.axes.size()));
      return;
    }
    int64_t columns = 1;
    for (const ShardAxis& axis : description.layout(i)) {
      if (axis.dim < 0 || axis.dim >= kMaxTensorRank || axis.extent < 2 ||
          axis.extent > kMaxWorldSize || axis.stride < 1 || axis.phase < 0 ||
          axis.phase >= axis.extent) {
        findings->push_back(
            fmt::format("layout {} cuts dimension {} into {} by stride {}, phase {}", i, axis.dim,
                        axis.extent, axis.stride, axis.phase));
        return;
      }
      columns *= axis.extent;
      if (columns > kMaxWorldSize) {
        findings->push_back(fmt::format("layout {} has more than {} parts", i, kMaxWorldSize));
        return;
      }
    }
    begin = end;
  }
  if (begin != description.axes.size())
    findings->push_back(
        fmt::format("the layouts use {} of {} axes", begin, description.axes.size()));
}

void check_form(const SymbolicDescription& description, size_t t, Findings* findings) {
  const uint32_t form = description.forms[t];
  const TensorRecord& tensor = description.catalog.tensors[t];
  if (form >= kFirstLayout && form - kFirstLayout >= description.layout_ends.size()) {
    findings->push_back(fmt::format("tensor {} has layout {} of {}", t, form - kFirstLayout,
                                    description.layout_ends.size()));
    return;
  }
  if (form >= kFirstLayout) {
    for (const ShardAxis& axis : description.layout(form - kFirstLayout)) {
      if (static_cast<uint32_t>(axis.dim) >= tensor.dimension_count)
        findings->push_back(fmt::format("the layout of tensor {} cuts dimension {}", t, axis.dim));
    }
  }
  if (tensor.chunk_count != 0) findings->push_back(fmt::format("tensor {} has chunks", t));
  if (tensor.kind == EntryKind::kRankLocal &&
      (tensor.rank != 0 || (form != kWhole && form != kBoxes)))
    findings->push_back(fmt::format("rank_local tensor {} is of form {}", t, form));
}

bool is_set(const std::vector<Digest128>& digests, size_t index) {
  return !digests.empty() && digests[index] != Digest128{};
}

void check_entries(const SymbolicDescription& description, size_t limit, Findings* findings) {
  const Catalog& catalog = description.catalog;
  for (size_t t = 0; t < catalog.tensors.size() && findings->size() < limit; ++t) {
    check_form(description, t, findings);
    if (is_set(description.tensor_digests, t) && description.forms[t] != kWhole)
      findings->push_back(fmt::format("tensor {} has a digest but is not whole", t));
  }
  for (size_t i = 0; i < catalog.objects.size() && findings->size() < limit; ++i) {
    const ObjectRecord& object = catalog.objects[i];
    const bool local = object.kind == EntryKind::kRankLocal;
    if (object.place != 0 || (local && (object.rank != 0 || object.size_bytes != 0)))
      findings->push_back(fmt::format("object {} of a description has a place or a size", i));
  }
}

template <typename Column>
void check_count(std::string_view what, const Column& column, size_t expected, Findings* findings) {
  if (!column.empty() && column.size() != expected)
    findings->push_back(fmt::format("{} {} for {} entries", column.size(), what, expected));
}

}  // namespace

std::vector<std::string> description_findings(const SymbolicDescription& description,
                                              size_t limit) {
  Findings findings;
  const Catalog& catalog = description.catalog;
  if (description.options_digest != options_text_digest(description.options_text))
    findings.push_back("the options have another digest");
  if (!is_valid_utf8(description.options_text)) findings.push_back("the options are not UTF-8");
  if (description.forms.size() != catalog.tensors.size()) {
    findings.push_back(
        fmt::format("{} forms for {} tensors", description.forms.size(), catalog.tensors.size()));
  }
  check_count("tensor digests", description.tensor_digests, catalog.tensors.size(), &findings);
  check_count("object digests", description.object_digests, catalog.objects.size(), &findings);
  check_layouts(description, &findings);
  if (findings.size() < limit) {
    for (std::string& each : catalog_findings(catalog, limit - findings.size()))
      findings.push_back(std::move(each));
  }
  if (findings.empty()) check_entries(description, limit, &findings);
  if (findings.size() > limit) findings.resize(limit);
  return findings;
}

namespace {

// The lists of a part follow each other through its columns.
bool check_lists(const SymbolicDescription& description, const SymbolicPart& part,
                 Findings* findings) {
  const Catalog& catalog = description.catalog;
  size_t number = 0;
  uint64_t boxes = 0;
  uint64_t more = 0;
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    if (description.forms[t] != kBoxes) continue;
    if (number == part.lists.size()) break;
    const BoxList& list = part.lists[number++];
    const uint32_t dimensions = catalog.tensors[t].dimension_count;
    const bool masked = dimensions == 64 || list.split_mask >> dimensions == 0;
    const auto split = static_cast<uint32_t>(std::popcount(list.split_mask));
    if (list.begin != boxes || list.more_begin != more || !masked) {
      findings->push_back(
          fmt::format("the boxes of rank {} of tensor '{}' do not follow those before them",
                      part.rank, escape_text(catalog.tensor_name(t))));
      return false;
    }
    boxes += list.count;
    more += list.count * internal::more_per_chunk(split);
  }
  size_t expected = 0;
  for (const uint32_t form : description.forms) expected += form == kBoxes ? 1 : 0;
  size_t own = 0;
  for (const ObjectRecord& object : catalog.objects) own += object.kind == EntryKind::kRankLocal;
  if (expected == part.lists.size() && own == part.object_sizes.size() &&
      boxes == part.boxes.size() && more == part.more.size())
    return true;
  findings->push_back(
      fmt::format("rank {} gives {} lists of {} boxes with {} further pairs and {} object sizes; "
                  "its description "
                  "and its lists have {}, {}, {} and {}",
                  part.rank, part.lists.size(), part.boxes.size(), part.more.size(),
                  part.object_sizes.size(), expected, boxes, more, own));
  return false;
}

// Boxes of one tensor: each inside it, with elements, its piece ascending.
void check_boxes(const SymbolicDescription& description, const SymbolicPart& part, size_t tensor,
                 const BoxList& list, Findings* findings) {
  const std::span<const int64_t> shape = description.catalog.shape(tensor);
  const internal::SplitDims split = internal::split_dims(shape, list.split_mask);
  const PartView view = view_of(part);
  for (uint32_t b = 0; b < list.count; ++b) {
    const ChunkRecord& box = part.boxes[list.begin + b];
    bool sound = box.tensor == tensor && box.number == 0 && box.place != kObjectPiece &&
                 (b == 0 || box.place > part.boxes[list.begin + b - 1].place) &&
                 (split.count > 0 || (box.offset0 | box.size0) == 0) &&
                 (split.count > 1 || (box.offset1 | box.size1) == 0) && split.unsplit_elements != 0;
    for (uint32_t k = 0; k < split.count && sound; ++k) {
      const ExtentPair pair = internal::list_pair(view, list, b, k);
      sound = pair.offset >= 0 && pair.size > 0 && pair.offset <= split.extents[k] &&
              pair.size <= split.extents[k] - pair.offset;
    }
    if (sound) continue;
    findings->push_back(fmt::format(
        "box {} of tensor '{}' of rank {} leaves its shape, holds nothing or is out of order", b,
        escape_text(description.catalog.tensor_name(tensor)), part.rank));
    return;
  }
}

}  // namespace

std::vector<std::string> part_findings(const SymbolicDescription& description,
                                       const SymbolicPart& part, size_t limit) {
  Findings findings;
  const Catalog& catalog = description.catalog;
  if (!check_lists(description, part, &findings)) return findings;
  size_t number = 0;
  for (size_t t = 0; t < catalog.tensors.size() && findings.size() < limit; ++t) {
    if (description.forms[t] == kBoxes)
      check_boxes(description, part, t, part.lists[number++], &findings);
  }
  for (size_t i = 0; i < part.object_sizes.size(); ++i) {
    if (part.object_sizes[i] > kMaxObjectBytes)
      findings.push_back(fmt::format("rank_local object {} of rank {} has {} bytes", i, part.rank,
                                     part.object_sizes[i]));
  }
  for (const uint32_t tensor : part.digest_tensors) {
    if (tensor >= catalog.tensors.size() || description.forms[tensor] == kWhole)
      findings.push_back(fmt::format(
          "rank {} gives a digest of tensor {}, which is whole or not there", part.rank, tensor));
  }
  if (findings.size() > limit) findings.resize(limit);
  return findings;
}

}  // namespace shardwright::plan
