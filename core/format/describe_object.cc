// SPDX-License-Identifier: Apache-2.0
#include "core/format/describe_object.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/archive/pickle_describe.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/torch_dcp/byte_items.h"

namespace shardwright::format {
namespace {

constexpr uint64_t kMostBytes = uint64_t{256} << 10;  // of the description

Result<std::string> described(std::span<const std::byte> pickle, std::string_view name) {
  archive::PickleOptions options;
  options.file = name;
  options.vocabulary = archive::torch_vocabulary();
  SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(pickle, options));
  return archive::describe_value(data, data.root(), kMostBytes);
}

Result<std::string> value_of(std::span<const std::byte> bytes, std::string_view type,
                             std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool is_json = type == archive::kJsonType || type == archive::kOpaqueType;
  if (is_json && nlohmann::json::accept(text)) return std::string(text);
  if (type == archive::kPickleType) return described(bytes, name);
  if (type == torch_dcp::kTorchSaveType) {
    const auto item = archive::bytes_of(bytes, 0, std::string(name));
    SHW_ASSIGN_OR_RETURN(const auto records, archive::TorchArchive::open(item));
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> pickle, records.read_pickle(item));
    return described(pickle, name);
  }
  JsonWriter value;
  if (type.starts_with("text/") && is_valid_utf8(text)) {
    value.text(text);
  } else {
    value.null();
  }
  return value.take();
}

}  // namespace

Result<std::string> describe_object(std::span<const std::byte> bytes, std::string_view content_type,
                                    std::string_view name) {
  SHW_ASSIGN_OR_RETURN(const std::string value, value_of(bytes, content_type, name));
  JsonWriter json;
  json.begin_object().key("content_type").text(content_type);
  json.key("bytes").number_unsigned(bytes.size());
  json.key("value").raw(value.empty() ? "null" : value);
  json.end_object();
  return json.take();
}

}  // namespace shardwright::format
