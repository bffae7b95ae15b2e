// SPDX-License-Identifier: Apache-2.0
#include "core/format/safetensors/file_plan.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/json_writer.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/safetensors/dtype_names.h"
#include "core/format/safetensors/header.h"
#include "core/layout/box_bytes.h"

namespace shardwright::format::safetensors {
namespace {

// From here on the buffer begins where a page does, as tensors of most sizes then do: they are
// transferred round the page cache, without a copy. Readers take any number of blanks.
constexpr uint64_t kAlignedBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxFileBytes = std::numeric_limits<int64_t>::max() / 2;

Status cannot_hold(const plan::Catalog& catalog, size_t tensor, std::string_view why) {
  const std::string_view name = catalog.texts.at(catalog.tensors[tensor].name);
  return unimplemented(
             fmt::format("tensor '{}' cannot be saved as safetensors: {}", escape_text(name), why))
      .with_detail("tensor", name)
      .with_detail("format", "safetensors");
}

Status check_tensor(const plan::Catalog& catalog, size_t tensor) {
  const plan::TensorRecord& record = catalog.tensors[tensor];
  const std::string_view name = catalog.texts.at(record.name);
  if (name == kMetadataKey) {
    return cannot_hold(catalog, tensor, "the format keeps its metadata under this name");
  }
  if (record.rank >= 0) {
    return cannot_hold(catalog, tensor,
                       fmt::format("it is one of rank {} alone, and the format knows no ranks; "
                                   "save it as replicated, or in the native format",
                                   record.rank));
  }
  if (name_of(record.dtype).empty()) {
    return cannot_hold(catalog, tensor,
                       fmt::format("the format has no dtype {}; it has {}",
                                   dtype_name(record.dtype), known_dtypes()));
  }
  if (!dtype_fills_bytes(record.dtype, element_count_of(catalog.shape(tensor)))) {
    return cannot_hold(
        catalog, tensor,
        fmt::format("its elements of {} bits do not fill whole bytes", dtype_bits(record.dtype)));
  }
  if (!dtype_is_subbyte(record.dtype)) return {};
  for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
    SHW_RETURN_IF_ERROR(
        check_whole_bytes(name, record.dtype, catalog.shape(tensor), catalog.chunk_box(c)));
  }
  return {};
}

// Sorts the tensors of a file, and writes its header.
Status write_head(const plan::Catalog& catalog, const std::map<std::string, std::string>& metadata,
                  PlannedFile* file) {
  std::ranges::sort(file->tensors, {}, [&](uint32_t t) {
    const plan::TensorRecord& record = catalog.tensors[t];
    return std::tuple(-static_cast<int64_t>(place_of(record.dtype)), catalog.texts.at(record.name));
  });
  JsonWriter json;
  json.begin_object().key(kMetadataKey).begin_object();
  for (const auto& [key, value] : metadata) json.key(key).text(value);
  json.end_object();
  uint64_t begin = 0;
  for (const uint32_t t : file->tensors) {
    const plan::TensorRecord& record = catalog.tensors[t];
    const uint64_t end = begin + catalog.tensor_bytes(t);
    json.key(catalog.texts.at(record.name)).begin_object();
    json.key("dtype").text(name_of(record.dtype)).key("shape").begin_array();
    for (const int64_t extent : catalog.shape(t)) json.number(extent);
    json.end_array().key("data_offsets").begin_array();
    json.number_unsigned(begin).number_unsigned(end).end_array().end_object();
    begin = end;
  }
  std::string text = json.end_object().take();
  const uint64_t alignment = begin < kAlignedBytes ? kLengthBytes : kExtentAlignmentBytes;
  const uint64_t end = (kLengthBytes + text.size() + alignment - 1) / alignment * alignment;
  text.resize(end - kLengthBytes, ' ');
  if (text.size() > kMaxHeaderBytes) {
    return resource_exhausted(
               "header", fmt::format("the header of a file with {} tensors would have {} bytes, "
                                     "more than the {} that readers of safetensors take; save with "
                                     "a smaller max_shard_size, or fewer objects, which are in it",
                                     file->tensors.size(), text.size(), kMaxHeaderBytes))
        .with_detail("limit", fmt::to_string(kMaxHeaderBytes));
  }
  for (uint64_t i = 0; i < kLengthBytes; ++i)
    file->head.push_back(static_cast<char>(text.size() >> (8 * i) & 0xFF));
  file->head += text;
  return {};
}

}  // namespace

Result<std::vector<PlannedFile>> plan_files(const plan::Catalog& catalog,
                                            const FileMetadata& metadata, uint64_t max_file_bytes) {
  std::vector<PlannedFile> files(1);
  for (uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    SHW_RETURN_IF_ERROR(check_tensor(catalog, t));
    const uint64_t bytes = catalog.tensor_bytes(t);
    uint64_t filled = 0;
    if (!checked_add(files.back().buffer_bytes, bytes, &filled) ||
        (filled > max_file_bytes && !files.back().tensors.empty())) {
      files.emplace_back();
      filled = bytes;
    }
    if (filled > kMaxFileBytes)
      return resource_exhausted("file_size", "a file of more than 2^62 bytes would be written");
    files.back().buffer_bytes = filled;
    files.back().tensors.push_back(t);
  }
  std::map<std::string, std::string> all = metadata.of_first;
  all.insert(metadata.of_all.begin(), metadata.of_all.end());
  SHW_RETURN_IF_ERROR(write_head(catalog, all, &files.front()));
  for (PlannedFile& file : std::span(files).subspan(1))
    SHW_RETURN_IF_ERROR(write_head(catalog, metadata.of_all, &file));
  return files;
}

std::string encode_index(const plan::Catalog& catalog, const std::vector<PlannedFile>& files,
                         const std::vector<std::string>& names) {
  std::map<std::string_view, std::string_view> file_of;
  uint64_t bytes = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    bytes += files[f].buffer_bytes;
    for (const uint32_t t : files[f].tensors)
      file_of.emplace(catalog.texts.at(catalog.tensors[t].name), names[f]);
  }
  JsonWriter json;
  json.begin_object().key("metadata").begin_object();
  json.key("total_size").number_unsigned(bytes).end_object();
  json.key("weight_map").begin_object();
  for (const auto& [tensor, file] : file_of) json.key(tensor).text(file);
  return json.end_object().end_object().take() + "\n";
}

}  // namespace shardwright::format::safetensors
