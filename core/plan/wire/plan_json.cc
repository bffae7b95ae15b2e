// SPDX-License-Identifier: Apache-2.0
//
// Plans as JSON text with "schema": 1, for people and tools.
#include <algorithm>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/plan/wire/symbolic_json_internal.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {
namespace {

class PlanJson {
 public:
  explicit PlanJson(uint64_t item_limit) : limit_(item_limit) {
    json_.begin_object().key("schema").number(1);
  }

  std::string take() {
    json_.end_object();
    return json_.take();
  }

  void local_save(const LocalSavePlan& plan) {
    text("kind", plan.kept ? "kept_save" : "local_save");
    json_.key("rank").number(plan.rank).key("world_size").number(plan.world_size);
    text("options", plan.options_text);
    catalog(plan.catalog, "piece");
  }

  void write_list(const WriteList& list) {
    text("kind", "write_list");
    json_.key("rank").number(list.rank).key("world_size").number(list.world_size);
    text("generation", list.generation);
    text("plan_digest", to_hex(list.plan_digest));
    unsigned_number("payload_bytes", list.payload_bytes());
    unsigned_number("item_count", list.items.size());
    json_.key("items").begin_array();
    for (size_t i = 0; i < shown(list.items.size()); ++i) {
      const WriteItem& item = list.items[i];
      json_.begin_object();
      text("type", item.piece == kObjectPiece ? "object" : "tensor");
      unsigned_number("entry", item.entry);
      if (item.piece != kObjectPiece) unsigned_number("piece", item.piece);
      unsigned_number("size_bytes", item.size_bytes);
      json_.end_object();
    }
    json_.end_array();
  }

  void load(const LoadPlan& plan) {
    text("kind", "load");
    json_.key("rank").number(plan.rank);
    text("generation", plan.generation);
    unsigned_number("read_count", plan.reads.size());
    unsigned_number("object_count", plan.objects.size());
    json_.key("reads").begin_array();
    for (size_t i = 0; i < shown(plan.reads.size()); ++i) read(plan.reads[i]);
    json_.end_array().key("objects").begin_array();
    for (size_t i = 0; i < shown(plan.objects.size()); ++i) {
      json_.begin_object();
      unsigned_number("entry", plan.objects[i].entry);
      unsigned_number("object", plan.objects[i].object);
      json_.end_object();
    }
    json_.end_array().key("casts").begin_array();
    for (size_t i = 0; i < shown(plan.casts.size()); ++i) {
      json_.begin_object();
      unsigned_number("entry", plan.casts[i].entry);
      text("stored", dtype_name(plan.casts[i].stored));
      text("wanted", dtype_name(plan.casts[i].wanted));
      json_.end_object();
    }
    json_.end_array().key("shapes").begin_array();
    for (size_t i = 0; i < shown(plan.shapes.size()); ++i) {
      json_.begin_object();
      unsigned_number("entry", plan.shapes[i].entry);
      unsigned_number("tensor", plan.shapes[i].tensor);
      json_.end_object();
    }
    json_.end_array();
    names("loaded", plan.loaded);
    names("missing", plan.missing);
    names("unexpected", plan.unexpected);
  }

  void write_result(const WriteResult& result) {
    text("kind", "write_result");
    json_.key("rank").number(result.rank);
    text("generation", result.generation);
    text("plan_digest", to_hex(result.plan_digest));
    json_.key("has_file").boolean(result.has_file);
    unsigned_number("file_bytes", result.file_bytes);
    unsigned_number("index_position", result.index_position);
    unsigned_number("index_bytes", result.index_bytes);
    text("index_digest", to_hex(result.index_digest));
    unsigned_number("payload_bytes", result.payload_bytes);
    json_.key("directory_sync_supported").boolean(result.directory_sync_supported);
  }

  void merged_save(const GlobalSavePlan& plan) {
    text("kind", "merged_save");
    text("generation", plan.generation);
    text("plan_digest", to_hex(plan.plan_digest));
    catalog(plan.catalog, "writer");
  }

 private:
  size_t shown(size_t count) const {
    return static_cast<size_t>(std::min<uint64_t>(count, limit_));
  }
  void text(std::string_view key, std::string_view value) { json_.key(key).text(value); }
  void unsigned_number(std::string_view key, uint64_t value) {
    json_.key(key).number_unsigned(value);
  }

  void numbers(std::string_view key, std::span<const int64_t> values) {
    json_.key(key).begin_array();
    for (const int64_t value : values) json_.number(value);
    json_.end_array();
  }

  void names(std::string_view key, const std::vector<std::string>& values) {
    json_.key(key).begin_array();
    for (size_t i = 0; i < shown(values.size()); ++i) json_.text(values[i]);
    json_.end_array();
  }

  void read(const ReadItem& read) {
    json_.begin_object();
    unsigned_number("entry", read.entry);
    unsigned_number("piece", read.piece);
    unsigned_number("chunk", read.chunk);
    numbers("offsets", read.box.offsets);
    numbers("sizes", read.box.sizes);
    json_.end_object();
  }

  // The limit counts tensors, chunks and objects each by themselves.
  void catalog(const Catalog& catalog, std::string_view place_noun) {
    unsigned_number("tensor_count", catalog.tensors.size());
    unsigned_number("chunk_count", catalog.chunk_count());
    unsigned_number("object_count", catalog.objects.size());
    json_.key("tensors").begin_array();
    for (size_t t = 0; t < shown(catalog.tensors.size()); ++t) {
      const TensorRecord& tensor = catalog.tensors[t];
      json_.begin_object();
      text("name", catalog.tensor_name(t));
      text("dtype", dtype_name(tensor.dtype));
      text("entry_kind", entry_kind_name(tensor.kind));
      if (tensor.rank >= 0) json_.key("rank").number(tensor.rank);
      numbers("shape", catalog.shape(t));
      unsigned_number("chunk_count", tensor.chunk_count);
      json_.end_object();
    }
    json_.end_array().key("chunks").begin_array();
    for (uint64_t c = 0; c < shown(catalog.chunk_count()); ++c) {
      const Box box = catalog.chunk_box(c);
      json_.begin_object();
      unsigned_number("tensor", catalog.tensor_of(c));
      numbers("offsets", box.offsets);
      numbers("sizes", box.sizes);
      unsigned_number(place_noun, catalog.place_of(c));
      unsigned_number("size_bytes", catalog.chunk_bytes(c));
      json_.end_object();
    }
    json_.end_array().key("objects").begin_array();
    for (size_t i = 0; i < shown(catalog.objects.size()); ++i) object(catalog, i, place_noun);
    json_.end_array();
  }

  void object(const Catalog& catalog, size_t i, std::string_view place_noun) {
    const ObjectRecord& object = catalog.objects[i];
    json_.begin_object();
    text("name", catalog.object_name(i));
    text("content_type", catalog.texts.at(object.content_type));
    text("entry_kind", entry_kind_name(object.kind));
    if (object.rank >= 0) json_.key("rank").number(object.rank);
    unsigned_number(place_noun, object.place);
    unsigned_number("size_bytes", object.size_bytes);
    json_.end_object();
  }

  JsonWriter json_;
  uint64_t limit_;
};

}  // namespace

Result<std::string> plan_json(std::span<const std::byte> buffer, uint64_t item_limit) {
  SHW_ASSIGN_OR_RETURN(const PlanKind kind, plan_kind(buffer));
  PlanJson json(item_limit);
  switch (kind) {
    case PlanKind::kLocalSave: {
      SHW_ASSIGN_OR_RETURN(const LocalSavePlan plan, decode_local_save(buffer));
      json.local_save(plan);
      break;
    }
    case PlanKind::kWriteList: {
      SHW_ASSIGN_OR_RETURN(const WriteList list, decode_write_list(buffer));
      json.write_list(list);
      break;
    }
    case PlanKind::kLoad: {
      SHW_ASSIGN_OR_RETURN(const LoadPlan plan, decode_load(buffer));
      json.load(plan);
      break;
    }
    case PlanKind::kWriteResult: {
      SHW_ASSIGN_OR_RETURN(const WriteResult result, decode_write_result(buffer));
      json.write_result(result);
      break;
    }
    case PlanKind::kKeptSave: {
      SHW_ASSIGN_OR_RETURN(const LocalSavePlan plan, decode_kept_save(buffer));
      json.local_save(plan);
      break;
    }
    case PlanKind::kMergedSave: {
      SHW_ASSIGN_OR_RETURN(const GlobalSavePlan plan, decode_merged_save(buffer));
      json.merged_save(plan);
      break;
    }
    case PlanKind::kSymbolicSave: {
      SHW_ASSIGN_OR_RETURN(const SymbolicDescription description, decode_symbolic_save(buffer));
      return internal::symbolic_save_json(description, item_limit);
    }
    case PlanKind::kSymbolicPart: {
      SHW_ASSIGN_OR_RETURN(const SymbolicPart part, decode_symbolic_part(buffer));
      return internal::symbolic_part_json(part, item_limit);
    }
    case PlanKind::kSymbolicLocal: {
      SHW_ASSIGN_OR_RETURN(const LocalSymbolicPlan plan, decode_symbolic_local(buffer));
      return internal::symbolic_local_json(plan, item_limit);
    }
  }
  return json.take();
}

}  // namespace shardwright::plan
