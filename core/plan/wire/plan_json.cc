// SPDX-License-Identifier: Apache-2.0
//
// Plans as JSON text with "schema": 1, for people and tools.
#include <algorithm>
#include <array>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/plan/box_bytes.h"
#include "core/plan/rank_plans.h"
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

  void add(const LocalPlan& plan) {
    text("kind", "local_save");
    part_facts(plan.part);
    entries(plan.description);
    held_boxes(plan);
  }

  void add(const Description& description) {
    text("kind", "description");
    entries(description);
  }

  void add(const LocalPart& part) {
    text("kind", "local_part");
    part_facts(part);
    json_.key("box_counts").begin_array();
    for (size_t i = 0; i < shown(part.lists.size()); ++i)
      json_.number_unsigned(part.lists[i].count);
    json_.end_array();
    unsigned_number("box_count", part.boxes.size());
    json_.key("object_sizes").begin_array();
    for (size_t i = 0; i < shown(part.object_sizes.size()); ++i)
      json_.number_unsigned(part.object_sizes[i]);
    json_.end_array();
    unsigned_number("digest_count", part.digest_tensors.size());
  }

  void add(const WriteList& list) {
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

  void add(const LoadPlan& plan) {
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

  void add(const WriteResult& result) {
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

  void add(const GlobalSavePlan& plan) {
    text("kind", "merged_save");
    text("generation", plan.generation);
    text("plan_digest", to_hex(plan.plan_digest));
    catalog(plan.catalog);
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
    box(read.box);
    json_.end_object();
  }

  void part_facts(const LocalPart& part) {
    json_.key("rank").number(part.rank).key("world_size").number(part.world_size);
    text("description_digest", to_hex(part.description_digest));
  }

  // The limit counts tensors, chunks, layouts and objects each by themselves.
  void entries(const Description& description) {
    const Catalog& catalog = description.catalog;
    text("options", description.options_text);
    unsigned_number("tensor_count", catalog.tensors.size());
    unsigned_number("object_count", catalog.objects.size());
    unsigned_number("layout_count", description.layout_ends.size());
    json_.key("layouts").begin_array();
    for (size_t i = 0; i < shown(description.layout_ends.size()); ++i)
      layout(description.layout(i));
    json_.end_array();
    tensors(catalog, &description);
    objects(catalog, "");
  }

  void layout(std::span<const ShardAxis> axes) {
    json_.begin_array();
    for (const ShardAxis& axis : axes) {
      json_.begin_object().key("dim").number(axis.dim).key("extent").number(axis.extent);
      json_.key("stride").number(axis.stride).key("phase").number(axis.phase).end_object();
    }
    json_.end_array();
  }

  // What the rank holds, box by box.
  void held_boxes(const LocalPlan& plan) {
    const EntryNumbers numbers(plan.description);
    const PartView part = view_of(plan.part);
    const RankView rank{plan.description, numbers, part, static_cast<uint32_t>(part.rank)};
    size_t count = 0;
    json_.key("chunks").begin_array();
    for (uint32_t t = 0; t < plan.description.forms.size(); ++t) {
      for (const Box& each : rank.boxes_of(t)) {
        if (count++ >= limit_) continue;
        json_.begin_object();
        unsigned_number("tensor", t);
        box(each);
        unsigned_number("size_bytes", box_bytes(plan.description.catalog.tensors[t].dtype, each));
        json_.end_object();
      }
    }
    json_.end_array();
    unsigned_number("chunk_count", count);
  }

  void catalog(const Catalog& catalog) {
    unsigned_number("tensor_count", catalog.tensors.size());
    unsigned_number("chunk_count", catalog.chunk_count());
    unsigned_number("object_count", catalog.objects.size());
    tensors(catalog, nullptr);
    json_.key("chunks").begin_array();
    for (uint64_t c = 0; c < shown(catalog.chunk_count()); ++c) {
      json_.begin_object();
      unsigned_number("tensor", catalog.tensor_of(c));
      box(catalog.chunk_box(c));
      unsigned_number("writer", catalog.place_of(c));
      unsigned_number("size_bytes", catalog.chunk_bytes(c));
      json_.end_object();
    }
    json_.end_array();
    objects(catalog, "writer");
  }

  void box(const Box& box) {
    numbers("offsets", box.offsets);
    numbers("sizes", box.sizes);
  }

  // forms: of a description, or null.
  void tensors(const Catalog& catalog, const Description* forms) {
    json_.key("tensors").begin_array();
    for (size_t t = 0; t < shown(catalog.tensors.size()); ++t) {
      const TensorRecord& tensor = catalog.tensors[t];
      json_.begin_object();
      text("name", catalog.tensor_name(t));
      text("dtype", dtype_name(tensor.dtype));
      text("entry_kind", entry_kind_name(tensor.kind));
      numbers("shape", catalog.shape(t));
      if (forms != nullptr) {
        form(forms->forms[t]);
      } else {
        if (tensor.rank >= 0) json_.key("rank").number(tensor.rank);
        unsigned_number("chunk_count", tensor.chunk_count);
      }
      json_.end_object();
    }
    json_.end_array();
  }

  void form(uint32_t form) {
    constexpr std::array<std::string_view, 4> kNames = {"whole", "boxes", "nothing", "layout"};
    text("form", kNames[std::min<uint32_t>(form, kFirstLayout)]);
    if (form >= kFirstLayout) unsigned_number("layout", form - kFirstLayout);
  }

  // place_noun: empty where nothing is stored yet.
  void objects(const Catalog& catalog, std::string_view place_noun) {
    json_.key("objects").begin_array();
    for (size_t i = 0; i < shown(catalog.objects.size()); ++i) {
      const ObjectRecord& object = catalog.objects[i];
      json_.begin_object();
      text("name", catalog.object_name(i));
      text("content_type", catalog.texts.at(object.content_type));
      text("entry_kind", entry_kind_name(object.kind));
      if (!place_noun.empty()) {
        if (object.rank >= 0) json_.key("rank").number(object.rank);
        unsigned_number(place_noun, object.place);
      }
      unsigned_number("size_bytes", object.size_bytes);
      json_.end_object();
    }
    json_.end_array();
  }

  JsonWriter json_;
  uint64_t limit_;
};

}  // namespace

Result<std::string> plan_json(std::span<const std::byte> buffer, uint64_t item_limit) {
  SHW_ASSIGN_OR_RETURN(const AnyPlan plan, decode_plan(buffer));
  PlanJson json(item_limit);
  std::visit([&](const auto& any) { json.add(any); }, plan);
  return json.take();
}

}  // namespace shardwright::plan
