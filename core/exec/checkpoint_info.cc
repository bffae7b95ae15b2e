// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint holds, as JSON text. Sizes are exact bytes; tools make them readable.
#include <ctime>
#include <map>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/exec/checkpoint_reader_internal.h"

namespace shardwright::exec::internal {
namespace {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

// "2026-01-31T23:59:59Z", "" for the time 0 that formats without a date give.
std::string utc_text(int64_t unix_ns) {
  if (unix_ns == 0) return "";
  std::tm parts{};
  const std::time_t seconds = unix_ns / kNanosecondsPerSecond;
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

void write_counts(const format::OpenedCheckpoint& opened, JsonWriter* json) {
  const plan::Catalog& catalog = opened.catalog();
  json->key("counts").begin_object();
  json->key("tensors").number_unsigned(catalog.tensors.size());
  json->key("chunks").number_unsigned(catalog.chunk_count());
  json->key("objects").number_unsigned(catalog.objects.size());
  json->key("files").number_unsigned(opened.files().size());
  json->end_object();
}

void write_bytes(const format::OpenedCheckpoint& opened, JsonWriter* json) {
  const plan::Catalog& catalog = opened.catalog();
  uint64_t tensors = 0;
  uint64_t objects = 0;
  uint64_t files = 0;
  std::map<std::string_view, uint64_t> by_dtype;
  for (size_t i = 0; i < catalog.tensors.size(); ++i) {
    const uint64_t bytes = catalog.tensor_bytes(i);
    tensors += bytes;
    by_dtype[dtype_name(catalog.tensors[i].dtype)] += bytes;
  }
  for (const plan::ObjectRecord& object : catalog.objects) objects += object.size_bytes;
  for (const format::FileInfo& file : opened.files()) files += file.size_bytes;
  json->key("bytes").begin_object();
  json->key("tensors").number_unsigned(tensors);
  json->key("objects").number_unsigned(objects);
  json->key("files").number_unsigned(files);
  json->end_object();
  json->key("bytes_by_dtype").begin_object();
  for (const auto& [name, bytes] : by_dtype) json->key(name).number_unsigned(bytes);
  json->end_object();
}

void write_files(const format::OpenedCheckpoint& opened, JsonWriter* json) {
  json->key("files").begin_array();
  for (const format::FileInfo& file : opened.files()) {
    json->begin_object();
    json->key("key").text(file.key);
    json->key("bytes").number_unsigned(file.size_bytes);
    json->key("rank").number(file.rank);
    json->end_object();
  }
  json->end_array();
}

void write_tensors(const plan::Catalog& catalog, JsonWriter* json) {
  json->key("tensors").begin_array();
  for (size_t i = 0; i < catalog.tensors.size(); ++i) {
    const plan::TensorRecord& tensor = catalog.tensors[i];
    json->begin_object();
    json->key("name").text(catalog.tensor_name(i));
    json->key("listed").text(listed_tensor_name(catalog, i));
    json->key("path").text(catalog.texts.at(tensor.path));
    json->key("dtype").text(dtype_name(tensor.dtype));
    json->key("shape").begin_array();
    for (const int64_t extent : catalog.shape(i)) json->number(extent);
    json->end_array();
    json->key("kind").text(entry_kind_name(tensor.kind));
    json->key("rank").number(tensor.rank);
    json->key("bytes").number_unsigned(catalog.tensor_bytes(i));
    json->key("chunks").number_unsigned(tensor.chunk_count);
    json->end_object();
  }
  json->end_array();
}

void write_objects(const plan::Catalog& catalog, JsonWriter* json) {
  json->key("objects").begin_array();
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    const plan::ObjectRecord& object = catalog.objects[i];
    json->begin_object();
    json->key("name").text(catalog.object_name(i));
    json->key("listed").text(listed_object_name(catalog, i));
    json->key("path").text(catalog.texts.at(object.path));
    json->key("content_type").text(catalog.texts.at(object.content_type));
    json->key("kind").text(entry_kind_name(object.kind));
    json->key("rank").number(object.rank);
    json->key("bytes").number_unsigned(object.size_bytes);
    json->end_object();
  }
  json->end_array();
}

}  // namespace

std::string checkpoint_info_json(const format::OpenedCheckpoint& opened, bool with_entries) {
  JsonWriter json;
  json.begin_object();
  json.key("schema").number(1);
  json.key("format").text(opened.format_name());
  json.key("generation").text(opened.generation());
  json.key("world_size").number(opened.world_size());
  json.key("created").text(utc_text(opened.created_unix_ns()));
  json.key("created_unix_ns").number(opened.created_unix_ns());
  json.key("digests").boolean(opened.digest_block_bytes() > 0);
  if (opened.has_checksums()) json.key("checksums").boolean(true);
  json.key("metadata").begin_object();
  for (const auto& [key, value] : opened.metadata()) json.key(key).text(value);
  json.end_object();
  // Names of tensors of which elements are missing, or stored in boxes that overlap.
  json.key("incomplete").begin_array();
  const plan::Catalog& catalog = opened.catalog();
  for (size_t t = 0; opened.is_partial() && t < catalog.tensors.size(); ++t) {
    if (!plan::prove_cover(catalog, t, plan::Copies::kAllowed).ok())
      json.text(listed_tensor_name(catalog, t));
  }
  json.end_array();
  json.key("notes").begin_array();
  for (const std::string& note : opened.notes()) json.text(note);
  json.end_array();
  write_counts(opened, &json);
  write_bytes(opened, &json);
  write_files(opened, &json);
  if (with_entries) {
    write_tensors(opened.catalog(), &json);
    write_objects(opened.catalog(), &json);
  }
  json.end_object();
  return json.take();
}

}  // namespace shardwright::exec::internal
