// SPDX-License-Identifier: Apache-2.0
//
// What the numbers of a description and of a part must mean.
#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/digest.h"
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

std::vector<std::string> part_findings(const SymbolicDescription& description,
                                       const SymbolicPart& part, size_t limit) {
  Findings findings;
  const Catalog& catalog = description.catalog;
  size_t listed = 0;
  uint64_t pairs = 0;
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    if (description.forms[t] != kBoxes) continue;
    if (listed < part.box_counts.size()) {
      const uint32_t dimensions = catalog.tensors[t].dimension_count;
      // Boxes without dimensions take no room in the part, so their number is bounded here.
      if (dimensions == 0 && part.box_counts[listed] > 1) {
        return {fmt::format("rank {} lists {} boxes of tensor '{}', which has no dimensions",
                            part.rank, part.box_counts[listed],
                            escape_text(catalog.tensor_name(t)))};
      }
      pairs += uint64_t{part.box_counts[listed]} * dimensions;
    }
    ++listed;
  }
  size_t local = 0;
  for (const ObjectRecord& object : catalog.objects) local += object.kind == EntryKind::kRankLocal;
  if (listed != part.box_counts.size() || local != part.object_sizes.size() ||
      pairs != part.extents.size()) {
    return {
        fmt::format("rank {} gives {} lists of boxes with {} pairs and {} object sizes; its "
                    "description has {}, {} and {}",
                    part.rank, part.box_counts.size(), part.extents.size(),
                    part.object_sizes.size(), listed, pairs, local)};
  }
  PartBoxesView boxes(part);
  for (size_t t = 0; t < catalog.tensors.size() && findings.size() < limit; ++t) {
    if (description.forms[t] != kBoxes) continue;
    const std::span<const int64_t> shape = catalog.shape(t);
    const PartBoxesView::Boxes own = boxes.next(shape.size());
    for (size_t b = 0; b < own.count; ++b) {
      for (size_t d = 0; d < shape.size(); ++d) {
        const ExtentPair pair = own[b][d];
        if (pair.offset < 0 || pair.size < 0 || pair.offset > shape[d] ||
            pair.size > shape[d] - pair.offset)
          findings.push_back(
              fmt::format("box {} of tensor '{}' of rank {} leaves the shape in "
                          "dimension {}: {} elements from {} of {}",
                          b, escape_text(catalog.tensor_name(t)), part.rank, d, pair.size,
                          pair.offset, shape[d]));
      }
    }
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
