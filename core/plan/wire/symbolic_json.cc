// SPDX-License-Identifier: Apache-2.0
//
// Descriptions and parts as JSON.
#include "core/plan/wire/symbolic_json_internal.h"

#include <algorithm>

#include "core/base/json_writer.h"
#include "core/base/text.h"

namespace shardwright::plan::internal {
namespace {

size_t shown(size_t count, uint64_t limit) {
  return static_cast<size_t>(std::min<uint64_t>(count, limit));
}

std::string_view form_name(uint32_t form) {
  switch (form) {
    case kWhole:
      return "whole";
    case kBoxes:
      return "boxes";
    case kNothing:
      return "nothing";
    default:
      return "layout";
  }
}

void write_axes(std::span<const ShardAxis> axes, JsonWriter* json) {
  json->begin_array();
  for (const ShardAxis& axis : axes) {
    json->begin_object();
    json->key("dim").number(axis.dim).key("extent").number(axis.extent);
    json->key("stride").number(axis.stride).key("phase").number(axis.phase);
    json->end_object();
  }
  json->end_array();
}

void write_tensor(const SymbolicDescription& description, size_t t, JsonWriter* json) {
  const Catalog& catalog = description.catalog;
  const uint32_t form = description.forms[t];
  json->begin_object();
  json->key("name").text(catalog.tensor_name(t));
  json->key("dtype").text(dtype_name(catalog.tensors[t].dtype));
  json->key("entry_kind").text(entry_kind_name(catalog.tensors[t].kind));
  json->key("shape").begin_array();
  for (const int64_t extent : catalog.shape(t)) json->number(extent);
  json->end_array().key("form").text(form_name(form));
  if (form >= kFirstLayout) json->key("layout").number_unsigned(form - kFirstLayout);
  json->end_object();
}

void write_object(const Catalog& catalog, size_t i, JsonWriter* json) {
  const ObjectRecord& object = catalog.objects[i];
  json->begin_object();
  json->key("name").text(catalog.object_name(i));
  json->key("content_type").text(catalog.texts.at(object.content_type));
  json->key("entry_kind").text(entry_kind_name(object.kind));
  json->key("size_bytes").number_unsigned(object.size_bytes);
  json->end_object();
}

void write_description(const SymbolicDescription& description, uint64_t item_limit,
                       JsonWriter* out) {
  const Catalog& catalog = description.catalog;
  JsonWriter& json = *out;
  json.key("options").text(description.options_text);
  json.key("tensor_count").number_unsigned(catalog.tensors.size());
  json.key("object_count").number_unsigned(catalog.objects.size());
  json.key("layout_count").number_unsigned(description.layout_ends.size());
  json.key("layouts").begin_array();
  for (size_t i = 0; i < shown(description.layout_ends.size(), item_limit); ++i)
    write_axes(description.layout(i), &json);
  json.end_array().key("tensors").begin_array();
  for (size_t t = 0; t < shown(catalog.tensors.size(), item_limit); ++t)
    write_tensor(description, t, &json);
  json.end_array().key("objects").begin_array();
  for (size_t i = 0; i < shown(catalog.objects.size(), item_limit); ++i)
    write_object(catalog, i, &json);
  json.end_array();
}

void write_part(const SymbolicPart& part, uint64_t item_limit, JsonWriter* out) {
  JsonWriter& json = *out;
  json.key("rank").number(part.rank).key("world_size").number(part.world_size);
  json.key("description_digest").text(to_hex(part.description_digest));
  json.key("box_counts").begin_array();
  for (size_t i = 0; i < shown(part.lists.size(), item_limit); ++i)
    json.number_unsigned(part.lists[i].count);
  json.end_array().key("box_count").number_unsigned(part.boxes.size());
  json.key("object_sizes").begin_array();
  for (size_t i = 0; i < shown(part.object_sizes.size(), item_limit); ++i)
    json.number_unsigned(part.object_sizes[i]);
  json.end_array().key("digest_count").number_unsigned(part.digest_tensors.size());
}

// Begins the object of a plan of this kind.
void begin(std::string_view kind, JsonWriter* json) {
  json->begin_object().key("schema").number(1);
  json->key("kind").text(kind);
}

}  // namespace

std::string symbolic_save_json(const SymbolicDescription& description, uint64_t item_limit) {
  JsonWriter json;
  begin("symbolic_save", &json);
  write_description(description, item_limit, &json);
  json.end_object();
  return json.take();
}

std::string symbolic_part_json(const SymbolicPart& part, uint64_t item_limit) {
  JsonWriter json;
  begin("symbolic_part", &json);
  write_part(part, item_limit, &json);
  json.end_object();
  return json.take();
}

std::string symbolic_local_json(const LocalSymbolicPlan& plan, uint64_t item_limit) {
  JsonWriter json;
  begin("symbolic_local", &json);
  write_part(plan.part, item_limit, &json);
  write_description(plan.description, item_limit, &json);
  json.end_object();
  return json.take();
}

}  // namespace shardwright::plan::internal
