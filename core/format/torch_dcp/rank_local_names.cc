// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/rank_local_names.h"

#include <charconv>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/state/path.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr std::string_view kMiddle = ".rank-";

// The path of the entry, whose last part had the rank behind it.
std::string path_without_rank(std::string_view path, std::string_view name, int32_t rank) {
  auto parts = parse_path(path);
  if (!parts.ok() || parts->empty()) return "";
  std::string& last = parts->back().text;
  const std::string ending = rank_local_key("", rank);
  if (!last.ends_with(ending)) return "";
  last.resize(last.size() - ending.size());
  const bool is_flat = parts->size() == 1;  // as one without a path is stored
  return is_flat || join_path(*parts) != name ? "" : format_path(*parts);
}

template <typename Entry>
void name_entry(const DcpIndex& index, Entry* entry) {
  const auto split = split_rank_local_key(entry->name);
  if (!split.has_value() || !index.rank_local.contains(split->name)) return;
  std::string name(split->name);
  entry->rank = split->rank;
  entry->path = path_without_rank(entry->path, name, split->rank);
  entry->name = std::move(name);
}

}  // namespace

std::string rank_local_key(std::string_view name, int32_t rank) {
  return fmt::format("{}{}{}", name, kMiddle, rank);
}

std::optional<RankLocalName> split_rank_local_key(std::string_view key) {
  const size_t middle = key.rfind(kMiddle);
  if (middle == std::string_view::npos) return std::nullopt;
  const std::string_view digits = key.substr(middle + kMiddle.size());
  RankLocalName split{key.substr(0, middle), -1};
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), split.rank);
  const bool is_whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
  const bool is_plain = is_whole && split.rank >= 0 && split.rank < kMaxWorldSize &&
                        fmt::to_string(split.rank) == digits;
  return is_plain ? std::optional(split) : std::nullopt;
}

void name_rank_local(DcpIndex* index) {
  if (index->rank_local.empty()) return;
  for (DcpIndex::Tensor& tensor : index->tensors) name_entry(*index, &tensor);
  for (DcpIndex::Object& object : index->objects) name_entry(*index, &object);
}

}  // namespace shardwright::format::torch_dcp
