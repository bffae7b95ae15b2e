// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/removal_list.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/json_tree.h"
#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/integrity/digest.h"
#include "core/storage/storage.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr uint64_t kMaxListBytes = uint64_t{256} << 20;

Status damaged_list(std::string_view what) {
  return data_loss(fmt::format("file '{}' {}", kRemovalListName, what))
      .with_detail("file", kRemovalListName)
      .with_detail("hint",
                   "a removal was cut off here, and this says what it left; move it away to go on "
                   "without, and files that no index names stay");
}

bool take_text(JsonValueView root, std::string_view key, std::string* text) {
  const JsonValueView member = root.member(key);
  if (!member.exists() || member.type() != JsonType::kText) return false;
  *text = member.text();
  return true;
}

// A file that is removed is one that a save would have written.
bool take_files(JsonValueView root, std::vector<std::string>* files) {
  const JsonValueView list = root.member("files");
  if (!list.exists() || list.type() != JsonType::kArray) return false;
  for (JsonValueView each = list.first(); each.exists(); each = each.next()) {
    if (each.type() != JsonType::kText || !is_data_file(each.text())) return false;
    files->emplace_back(each.text());
  }
  return true;
}

bool is_digests_name(std::string_view name) {
  return name.empty() || is_digests_file(name);
}

}  // namespace

std::string digest_text(std::span<const std::byte> index) {
  return to_hex(integrity::xxh3_128(index));
}

std::string encode_removal_list(const RemovalList& list) {
  JsonWriter json;
  json.begin_object().key("before").text(list.before).key("after").text(list.after);
  json.key("files").begin_array();
  for (const std::string& file : list.files) json.text(file);
  json.end_array().key("digests").text(list.digests);
  json.key("new_digests").text(list.new_digests).key("kept").text(list.kept).end_object();
  return json.take();
}

Result<RemovalList> decode_removal_list(std::span<const std::byte> bytes) {
  JsonLimits limits;
  limits.text_bytes = kMaxListBytes;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Result<JsonTree> tree = JsonTree::parse(text, limits);
  if (!tree.ok()) return damaged_list(fmt::format("is damaged: {}", tree.status().message()));
  const JsonValueView root = tree->root();
  RemovalList list;
  const bool is_whole =
      root.type() == JsonType::kObject && take_text(root, "before", &list.before) &&
      take_text(root, "after", &list.after) && take_files(root, &list.files) &&
      take_text(root, "digests", &list.digests) &&
      take_text(root, "new_digests", &list.new_digests) && take_text(root, "kept", &list.kept);
  if (!is_whole || !is_digests_name(list.digests) || !is_digests_name(list.new_digests))
    return damaged_list("says what no removal says");
  return list;
}

Result<std::optional<RemovalList>> read_removal_list(const Location& location) {
  const auto bytes = storage::read_all(
      *location.storage, storage::join_key(location.prefix, kRemovalListName), kMaxListBytes);
  if (bytes.status().code() == StatusCode::kNotFound) return std::optional<RemovalList>();
  if (bytes.status().code() == StatusCode::kResourceExhausted)
    return damaged_list(fmt::format("has more than {} bytes", kMaxListBytes));
  SHW_RETURN_IF_ERROR(bytes.status());
  SHW_ASSIGN_OR_RETURN(RemovalList list, decode_removal_list(*bytes));
  return std::optional(std::move(list));
}

}  // namespace shardwright::format::torch_dcp
