// SPDX-License-Identifier: Apache-2.0
//
// A report as JSON: every field under its own name.
#include "core/exec/report.h"

#include "core/base/json_writer.h"

namespace shardwright::exec {
namespace {

void add_texts(JsonWriter* json, std::string_view key, const std::vector<std::string>& texts) {
  json->key(key).begin_array();
  for (const std::string& text : texts) json->text(text);
  json->end_array();
}

void add_identity(JsonWriter* json, const Report& report) {
  json->key("schema").number(1);
  json->key("operation").text(report.operation);
  json->key("format").text(report.format);
  json->key("path").text(report.path);
  json->key("generation").text(report.generation);
  json->key("rank").number(report.rank);
  json->key("world_size").number(report.world_size);
  json->key("collective").text(report.collective);
  json->key("durability").text(report.durability);
  json->key("digests").boolean(report.digests);
  if (report.checksums) json->key("checksums").boolean(true);
  json->key("verify").text(report.verify);
  json->key("dir_fsync").text(report.dir_fsync);
  json->key("io_engine").text(report.io_engine);
}

void add_counts(JsonWriter* json, const Report& report) {
  json->key("tensors").number_unsigned(report.tensors);
  json->key("objects").number_unsigned(report.objects);
  json->key("chunks").number_unsigned(report.chunks);
  json->key("files").number_unsigned(report.files);
  json->key("bytes_state").number_unsigned(report.bytes_state);
  json->key("bytes_written").number_unsigned(report.bytes_written);
  json->key("bytes_read").number_unsigned(report.bytes_read);
  json->key("bytes_over_read").number_unsigned(report.bytes_over_read);
  json->key("bytes_cached").number_unsigned(report.bytes_cached);
  if (report.bytes_unverified > 0)
    json->key("bytes_unverified").number_unsigned(report.bytes_unverified);
  json->key("bytes_total").number_unsigned(report.bytes_total);
  json->key("bytes_files").number_unsigned(report.bytes_files);
  json->key("bytes_received").number_unsigned(report.bytes_received);
  json->key("memory_budget").number_unsigned(report.memory_budget);
  json->key("staging_peak_bytes").number_unsigned(report.staging_peak_bytes);
}

void add_casts(JsonWriter* json, const std::vector<CastReport>& casts) {
  json->key("casts").begin_array();
  for (const CastReport& cast : casts) {
    json->begin_object();
    json->key("name").text(cast.name);
    json->key("stored").text(cast.stored);
    json->key("wanted").text(cast.wanted);
    json->end_object();
  }
  json->end_array();
}

void add_numbers(JsonWriter* json, std::string_view key, const std::vector<int64_t>& numbers) {
  json->key(key).begin_array();
  for (const int64_t number : numbers) json->number(number);
  json->end_array();
}

void add_shapes(JsonWriter* json, const std::vector<ShapeReport>& shapes) {
  json->key("shapes").begin_array();
  for (const ShapeReport& shape : shapes) {
    json->begin_object();
    json->key("name").text(shape.name);
    add_numbers(json, "stored", shape.stored);
    add_numbers(json, "wanted", shape.wanted);
    json->end_object();
  }
  json->end_array();
}

void add_damage(JsonWriter* json, const std::vector<DamageReport>& damage) {
  json->key("damage").begin_array();
  for (const DamageReport& each : damage) {
    json->begin_object();
    json->key("message").text(each.message);
    json->key("tensor").text(each.tensor);
    json->key("box").text(each.box);
    json->key("file").text(each.file);
    json->key("offset").number_unsigned(each.offset);
    json->key("length").number_unsigned(each.length);
    json->end_object();
  }
  json->end_array();
}

void add_removed(JsonWriter* json, const std::vector<NamedBytes>& removed) {
  json->key("removed").begin_array();
  for (const NamedBytes& each : removed) {
    json->begin_object();
    json->key("name").text(each.name);
    json->key("bytes").number_unsigned(each.bytes);
    json->end_object();
  }
  json->end_array();
}

void add_times(JsonWriter* json, const Report& report) {
  json->key("times").begin_array();
  for (const StageTime& time : report.times) {
    json->begin_object();
    json->key("stage").text(time.stage);
    json->key("duration_ns").number(time.duration_ns);
    json->end_object();
  }
  json->end_array();
  json->key("elapsed_ns").number(report.elapsed_ns);
}

}  // namespace

void Report::note_exchange(uint64_t received_bytes, std::string_view transport) noexcept {
  bytes_received = received_bytes;
  try {
    collective = transport;
  } catch (...) {
    collective.clear();
  }
}

std::string Report::to_json() const {
  JsonWriter json;
  json.begin_object();
  add_identity(&json, *this);
  add_counts(&json, *this);
  add_texts(&json, "loaded", loaded);
  add_texts(&json, "missing", missing);
  add_texts(&json, "unexpected", unexpected);
  add_casts(&json, casts);
  add_shapes(&json, shapes);
  add_damage(&json, damage);
  add_removed(&json, removed);
  add_texts(&json, "notes", notes);
  add_times(&json, *this);
  json.end_object();
  return json.take();
}

}  // namespace shardwright::exec
