// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/index_check.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "core/format/archive/pickle_tokens.h"
#include "core/format/torch_dcp/dcp_index.h"

namespace shardwright::format::torch_dcp {
namespace {

using archive::PickleOpcode;
using archive::PickleToken;
using archive::PickleTokens;

Status wrong_index(std::string_view what) {
  return internal_error(fmt::format("the new index {}", what));
}

Status beyond_readers(std::string_view what, uint64_t found, uint64_t limit) {
  return resource_exhausted(
             "index", fmt::format("the index of this save has {} {}, and readers take {}; save in "
                                  "the native format, or fewer chunks",
                                  found, what, limit))
      .with_detail("limit", fmt::to_string(limit))
      .with_detail("found", fmt::to_string(found));
}

// Whether a reader keeps a value for it.
bool makes_value(const PickleToken& token) {
  switch (token.opcode) {
    case PickleOpcode::kNewObj:
    case PickleOpcode::kReduce:
    case PickleOpcode::kTuple:
    case PickleOpcode::kTuple1:
    case PickleOpcode::kTuple2:
    case PickleOpcode::kTuple3:
    case PickleOpcode::kEmptyDict:
    case PickleOpcode::kEmptyList:
    case PickleOpcode::kShortBinUnicode:
    case PickleOpcode::kBinUnicode:
    case PickleOpcode::kStackGlobal:
    case PickleOpcode::kLong1:
    case PickleOpcode::kLong4:
      return true;
    default:
      return false;
  }
}

struct OpcodeCounts {
  uint64_t values = 0;
  uint64_t instances = 0;  // that get a state
};

Result<OpcodeCounts> count_opcodes(std::string_view bytes) {
  PickleTokens tokens(std::as_bytes(std::span(bytes)), kIndexName);
  OpcodeCounts counts;
  PickleToken token;
  while (tokens.next(&token)) {
    if (makes_value(token)) ++counts.values;
    if (token.opcode == PickleOpcode::kBuild) ++counts.instances;
  }
  if (token.opcode != PickleOpcode::kStop || tokens.position() != bytes.size())
    return wrong_index(fmt::format("is no pickle: {}", tokens.status().to_string()));
  return counts;
}

// Metadata and StorageMeta; of each tensor itself and its properties; of each chunk itself, its key
// and its place; of each object its key and its place.
uint64_t instances_meant(const IndexContents& contents, uint64_t chunks) {
  return 2 + 2 * contents.catalog.tensors.size() + 3 * chunks + 2 * contents.objects.size();
}

Status check_decoded(std::string_view bytes, const IndexContents& contents,
                     std::span<const ItemPlace> chunks) {
  const auto again = decode_index(std::as_bytes(std::span(bytes)), kIndexName);
  if (!again.ok())
    return wrong_index(fmt::format("does not decode: {}", again.status().to_string()));
  const auto is_same = [&](const ItemPlace& found, const ItemPlace& wanted) {
    return again->files[found.file] == contents.files[wanted.file] &&
           found.offset == wanted.offset && found.size_bytes == wanted.size_bytes;
  };
  bool same = again->tensors.size() == contents.catalog.tensors.size() &&
              again->objects.size() == contents.objects.size() &&
              std::ranges::equal(again->places, chunks, is_same);
  for (size_t o = 0; same && o < contents.objects.size(); ++o)
    same = is_same(again->objects[o].place, contents.objects[o]);
  return same ? Status() : wrong_index("decodes to something else");
}

}  // namespace

Status check_encoded(std::string_view bytes, const IndexContents& contents,
                     const IndexCheckRules& rules) {
  if (bytes.size() > rules.most_bytes)
    return beyond_readers("bytes", bytes.size(), rules.most_bytes);
  std::vector<ItemPlace> chunks;
  std::ranges::copy_if(contents.chunks, std::back_inserter(chunks),
                       [](const ItemPlace& place) { return place.file != ItemPlace::kNowhere; });
  if (bytes.size() <= rules.most_decoded_bytes) return check_decoded(bytes, contents, chunks);
  SHW_ASSIGN_OR_RETURN(const OpcodeCounts found, count_opcodes(bytes));
  if (found.values > rules.most_values)
    return beyond_readers("values", found.values, rules.most_values);
  const uint64_t meant = instances_meant(contents, chunks.size());
  if (found.instances == meant) return {};
  return wrong_index(fmt::format("has {} instances in place of {}", found.instances, meant));
}

}  // namespace shardwright::format::torch_dcp
