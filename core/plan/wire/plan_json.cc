// SPDX-License-Identifier: Apache-2.0
//
// Plans as JSON text with "schema": 1, for people and tools.
#include <algorithm>
#include <array>
#include <concepts>
#include <span>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/layout/box_bytes.h"
#include "core/plan/rank_plans.h"
#include "core/plan/wire/wire.h"

namespace shardwright::plan {
namespace {

class PlanJson {
 public:
  explicit PlanJson(uint64_t item_limit) : limit_(item_limit) {
    json_.begin_object();
    put("schema", 1);
  }

  std::string take() {
    json_.end_object();
    return json_.take();
  }

  void add(const LocalPlan& plan) {
    put("kind", "local_save");
    part_facts(plan.part);
    entries(plan.description);
    held_boxes(plan);
  }

  void add(const Description& description) {
    put("kind", "description");
    entries(description);
  }

  void add(const LocalPart& part) {
    put("kind", "local_part");
    part_facts(part);
    array("box_counts", part.lists.size(), [&](size_t i) { write(part.lists[i].count); });
    put("box_count", part.boxes.size());
    values("object_sizes", part.object_sizes);
    put("digest_count", part.digest_tensors.size());
  }

  void add(const WriteList& list) {
    put("kind", "write_list", "rank", list.rank, "world_size", list.world_size, "generation",
        list.generation, "plan_digest", to_hex(list.plan_digest), "payload_bytes",
        list.payload_bytes(), "item_count", list.items.size());
    objects("items", list.items.size(), [&](size_t i) {
      const WriteItem& item = list.items[i];
      const bool object = item.piece == kObjectPiece;
      put("type", object ? "object" : "tensor", "entry", item.entry);
      if (!object) put("piece", item.piece);
      put("size_bytes", item.size_bytes);
    });
  }

  void add(const LoadPlan& plan) {
    put("kind", "load", "rank", plan.rank, "generation", plan.generation, "read_count",
        plan.reads.size(), "object_count", plan.objects.size());
    objects("reads", plan.reads.size(), [&](size_t i) {
      const ReadItem read = plan.reads[i];
      put("entry", read.entry, "piece", read.piece, "chunk", read.chunk);
      box(read.box);
    });
    objects("objects", plan.objects.size(), [&](size_t i) {
      put("entry", plan.objects[i].entry, "object", plan.objects[i].object);
    });
    objects("casts", plan.casts.size(), [&](size_t i) {
      const CastNote& cast = plan.casts[i];
      put("entry", cast.entry, "stored", dtype_name(cast.stored), "wanted",
          dtype_name(cast.wanted));
    });
    objects("shapes", plan.shapes.size(),
            [&](size_t i) { put("entry", plan.shapes[i].entry, "tensor", plan.shapes[i].tensor); });
    values("loaded", plan.loaded);
    values("missing", plan.missing);
    values("unexpected", plan.unexpected);
  }

  void add(const WriteResult& result) {
    put("kind", "write_result", "rank", result.rank, "generation", result.generation, "plan_digest",
        to_hex(result.plan_digest), "has_file", result.has_file, "file_bytes", result.file_bytes,
        "index_position", result.index_position, "index_bytes", result.index_bytes, "index_digest",
        to_hex(result.index_digest), "payload_bytes", result.payload_bytes,
        "directory_sync_supported", result.directory_sync_supported, "details_bytes",
        result.details.size(), "file_sha256", to_hex(result.file_sha256));
  }

  void add(const WantList& list) {
    put("kind", "want_list", "rank", list.rank, "world_size", list.world_size, "node", list.node,
        "generation", list.generation, "round_bytes", list.round_bytes, "block_count",
        list.blocks.size());
    objects("blocks", list.blocks.size(), [&](uint64_t b) {
      put("position", list.blocks[b].position, "length", list.blocks[b].length);
    });
  }

  void add(const ExchangePlan& plan) {
    put("kind", "exchange", "rank", plan.rank, "world_size", plan.world_size, "generation",
        plan.generation, "span_bytes", plan.span_bytes, "round_count", plan.rounds.size(),
        "route_count", plan.routes.size(), "target_count", plan.targets.size());
    objects("routes", plan.routes.size(), [&](uint64_t r) {
      const Route& route = plan.routes[r];
      put("taker", route.taker, "source", route.source, "step", route.step, "target_count",
          route.targets);
    });
  }

  void add(const GlobalSavePlan& plan) {
    const Catalog& catalog = plan.catalog;
    put("kind", "merged_save", "generation", plan.generation, "plan_digest",
        to_hex(plan.plan_digest), "tensor_count", catalog.tensors.size(), "chunk_count",
        catalog.chunk_count(), "object_count", catalog.objects.size());
    tensors(catalog, nullptr);
    objects("chunks", catalog.chunk_count(), [&](uint64_t c) {
      put("tensor", catalog.tensor_of(c));
      box(catalog.chunk_box(c));
      put("writer", catalog.place_of(c), "size_bytes", catalog.chunk_bytes(c));
    });
    byte_objects(catalog, "writer");
  }

 private:
  void write(std::string_view value) { json_.text(value); }
  void write(std::integral auto value) {
    if constexpr (std::same_as<decltype(value), bool>) {
      json_.boolean(value);
    } else if constexpr (std::signed_integral<decltype(value)>) {
      json_.number(value);
    } else {
      json_.number_unsigned(value);
    }
  }
  void write(std::span<const int64_t> numbers) {
    json_.begin_array();
    for (const int64_t number : numbers) json_.number(number);
    json_.end_array();
  }

  // Keys and their values by turns.
  template <typename... Rest>
  void put(std::string_view key, const auto& value, const Rest&... rest) {
    json_.key(key);
    write(value);
    if constexpr (sizeof...(rest) > 0) put(rest...);
  }

  // Of the items that are shown each writes its own. The limit counts tensors, chunks, layouts and
  // objects each by themselves.
  template <typename Item>
  void array(std::string_view key, uint64_t count, const Item& item) {
    json_.key(key).begin_array();
    for (uint64_t i = 0; i < std::min(count, limit_); ++i) item(i);
    json_.end_array();
  }

  template <typename Item>
  void objects(std::string_view key, uint64_t count, const Item& item) {
    array(key, count, [&](uint64_t i) {
      json_.begin_object();
      item(i);
      json_.end_object();
    });
  }

  void values(std::string_view key, const auto& values) {
    array(key, values.size(), [&](size_t i) { write(values[i]); });
  }

  void part_facts(const LocalPart& part) {
    put("rank", part.rank, "world_size", part.world_size, "description_digest",
        to_hex(part.description_digest));
  }

  void entries(const Description& description) {
    const Catalog& catalog = description.catalog;
    put("options", description.options_text, "tensor_count", catalog.tensors.size(), "object_count",
        catalog.objects.size(), "layout_count", description.layout_ends.size());
    array("layouts", description.layout_ends.size(), [&](size_t i) {
      json_.begin_array();
      for (const ShardAxis& axis : description.layout(i)) {
        json_.begin_object();
        put("dim", axis.dim, "extent", axis.extent, "stride", axis.stride, "phase", axis.phase);
        json_.end_object();
      }
      json_.end_array();
    });
    tensors(catalog, &description);
    byte_objects(catalog, "");
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
        put("tensor", t);
        box(each);
        put("size_bytes", box_bytes(plan.description.catalog.tensors[t].dtype, each));
        json_.end_object();
      }
    }
    json_.end_array();
    put("chunk_count", count);
  }

  void box(const Box& box) { put("offsets", box.offsets, "sizes", box.sizes); }

  // forms: of a description, or null.
  void tensors(const Catalog& catalog, const Description* forms) {
    objects("tensors", catalog.tensors.size(), [&](size_t t) {
      const TensorRecord& tensor = catalog.tensors[t];
      put("name", catalog.tensor_name(t), "dtype", dtype_name(tensor.dtype), "entry_kind",
          entry_kind_name(tensor.kind), "shape", catalog.shape(t));
      if (forms != nullptr) return form(forms->forms[t]);
      if (tensor.rank >= 0) put("rank", tensor.rank);
      put("chunk_count", tensor.chunk_count);
    });
  }

  void form(uint32_t form) {
    constexpr std::array<std::string_view, 4> kNames = {"whole", "boxes", "nothing", "layout"};
    put("form", kNames[std::min<uint32_t>(form, kFirstLayout)]);
    if (form >= kFirstLayout) put("layout", form - kFirstLayout);
  }

  // place_noun: empty where nothing is stored yet.
  void byte_objects(const Catalog& catalog, std::string_view place_noun) {
    objects("objects", catalog.objects.size(), [&](size_t i) {
      const ObjectRecord& object = catalog.objects[i];
      put("name", catalog.object_name(i), "content_type", catalog.texts.at(object.content_type),
          "entry_kind", entry_kind_name(object.kind));
      if (!place_noun.empty()) {
        if (object.rank >= 0) put("rank", object.rank);
        put(place_noun, object.place);
      }
      put("size_bytes", object.size_bytes);
    });
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
