// SPDX-License-Identifier: Apache-2.0
//
// Writes the explicit catalog: per rank the entries that the catalog lists for the first time, in
// that rank's order. Write lists are those of save/write_lists.cc.
#include "core/plan/symbolic/expand_internal.h"

#include <algorithm>

#include "core/base/huge_pages.h"
#include "core/plan/digest.h"
#include "core/plan/flat_chunks_internal.h"
#include "core/plan/symbolic/rank_writes_internal.h"
#include "core/plan/wire/catalog_wire.h"

namespace shardwright::plan::internal {
namespace {

class Expansion {
 public:
  explicit Expansion(const SymbolicBody& body) : body_(body) {}

  Result<GlobalSavePlan> run(std::string generation) {
    const auto ranks = static_cast<uint32_t>(body_.loads.size());
    reserve();
    for (uint32_t r = 0; r < ranks; ++r) add_tensors(r);
    for (uint32_t r = 0; r < ranks; ++r) SHW_RETURN_IF_ERROR(add_objects(r));
    take_types_of_owners();
    plan_.lists.resize(ranks);
    list_writes(owners_, &plan_);
    SHW_ASSIGN_OR_RETURN(plan_.plan_digest, catalog_digest(plan_.catalog));
    plan_.generation = std::move(generation);
    for (uint32_t r = 0; r < ranks; ++r) {
      WriteList& list = plan_.lists[r];
      list.rank = static_cast<int32_t>(r);
      list.world_size = static_cast<int32_t>(ranks);
      list.generation = plan_.generation;
      list.plan_digest = plan_.plan_digest;
    }
    return std::move(plan_);
  }

 private:
  // Room for the chunks of shared tensors, which are most.
  void reserve() {
    uint64_t chunks = 0;
    for (const TensorPlan& tensor : body_.tensors) {
      chunks += tensor.grid == kListed ? body_.listed[tensor.map].chunk_count()
                                       : body_.grids[tensor.grid].chunk_count();
    }
    reserve_large(&plan_.catalog.chunks, chunks);
    reserve_large(&owners_.chunks, chunks);
  }

  // The catalog lists an entry under this rank.
  bool is_new(const PlacedEntry& each, uint32_t rank) const {
    return each.place.rank == static_cast<int32_t>(rank);
  }

  // Entries of a description whose ranks are not all the same as its first one's.
  bool lists_entries(const EntryGroups& groups, uint32_t rank) const {
    const uint32_t number = body_.ranks.description_of_rank[rank];
    if (body_.merged.first_ranks[number] == static_cast<int32_t>(rank)) return true;
    return std::ranges::find(groups.group_of[number], kLocalEntry) != groups.group_of[number].end();
  }

  void add_tensors(uint32_t rank) {
    if (!lists_entries(body_.merged.tensors, rank)) return;
    const Catalog& from = body_.ranks.of(static_cast<int32_t>(rank)).catalog;
    for (const PlacedEntry& each : catalog_order(body_, body_.merged.tensors, rank)) {
      if (!is_new(each, rank)) continue;
      begin_tensor(from, each.entry,
                   each.group == kLocalEntry ? static_cast<int32_t>(rank) : int32_t{-1});
      if (each.group == kLocalEntry) {
        add_local_chunks(each.entry, rank);
      } else if (body_.tensors[each.group].grid == kListed) {
        add_listed_chunks(each.group);
      } else {
        add_columns(each.group);
      }
      end_tensor();
    }
  }

  void begin_tensor(const Catalog& from, uint32_t entry, int32_t owner) {
    Catalog& catalog = plan_.catalog;
    const TensorRecord& source = from.tensors[entry];
    const std::span<const int64_t> shape = from.shape(entry);
    record_ = source;
    record_.name = catalog.texts.append(from.texts.at(source.name));
    record_.path = catalog.texts.append(from.texts.at(source.path));
    record_.rank = owner;
    record_.shape_begin = catalog.shapes.size();
    record_.split_mask = 0;
    record_.chunk_begin = catalog.chunks.size();
    record_.more_begin = catalog.more.size();
    catalog.shapes.insert(catalog.shapes.end(), shape.begin(), shape.end());
    shape_ = shape;
  }

  void end_tensor() {
    record_.chunk_count = plan_.catalog.chunks.size() - record_.chunk_begin;
    plan_.catalog.tensors.push_back(record_);
  }

  void note_splits(std::span<const ExtentPair> box) {
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (box[d].size != shape_[d]) record_.split_mask |= uint64_t{1} << d;
    }
  }

  // After the split mask is known.
  void add_chunk(std::span<const ExtentPair> box, const Holder& owner) {
    Catalog& catalog = plan_.catalog;
    ChunkRecord chunk;
    chunk.tensor = static_cast<uint32_t>(catalog.tensors.size());
    chunk.place = owner.rank;
    uint32_t k = 0;
    for (size_t d = 0; d < box.size(); ++d) {
      if ((record_.split_mask >> d & 1) == 0) continue;
      if (k == 0) {
        chunk.offset0 = box[d].offset;
        chunk.size0 = box[d].size;
      } else if (k == 1) {
        chunk.offset1 = box[d].offset;
        chunk.size1 = box[d].size;
      } else {
        catalog.more.push_back(box[d]);
      }
      ++k;
    }
    catalog.chunks.push_back(chunk);
    owners_.chunks.push_back(owner);
  }

  void add_local_chunks(uint32_t entry, uint32_t rank) {
    const SymbolicDescription& description = body_.ranks.of(static_cast<int32_t>(rank));
    if (description.forms[entry] == kBoxes) {
      const std::vector<ListedBox> boxes =
          sorted_boxes(body_.parts.boxes(static_cast<int32_t>(rank), entry));
      for (const ListedBox& box : boxes) note_splits(box.extents);
      for (const ListedBox& box : boxes) add_chunk(box.extents, {rank, entry, box.piece});
    } else if (element_count_of(shape_) != 0) {
      add_chunk(whole(), {rank, entry, 0});
    }
  }

  std::span<const ExtentPair> whole() {
    pairs_.clear();
    for (const int64_t extent : shape_) pairs_.push_back({0, extent});
    return pairs_;
  }

  void add_listed_chunks(size_t group) {
    const ListedTensor& listed = body_.listed[body_.tensors[group].map];
    for (size_t c = 0; c < listed.chunk_count(); ++c) note_splits(listed.box(c));
    for (size_t c = 0; c < listed.chunk_count(); ++c) add_chunk(listed.box(c), listed.owner(c));
  }

  void add_columns(size_t group) {
    const ShardGrid& grid = body_.grids[body_.tensors[group].grid];
    record_.split_mask = grid.split_mask();
    pairs_.resize(shape_.size());
    for (uint64_t c = 0; c < grid.chunk_count(); ++c) {
      const uint32_t column = grid.column_of_chunk(c);
      const uint32_t owner = body_.column_owner(group, column);
      grid.box_of_column(column, pairs_);
      add_chunk(pairs_, {owner, body_.member_of(body_.merged.tensors, group, owner).entry, 0});
    }
  }

  Status add_objects(uint32_t rank) {
    if (!lists_entries(body_.merged.objects, rank)) return {};
    const SymbolicPart* part = body_.ranks.part_of(static_cast<int32_t>(rank));
    const Catalog& from = body_.ranks.of(static_cast<int32_t>(rank)).catalog;
    std::vector<uint64_t> sizes;
    size_t local = 0;
    for (const ObjectRecord& object : from.objects) {
      const bool own = object.kind == EntryKind::kRankLocal;
      sizes.push_back(own ? part->object_sizes[local++] : object.size_bytes);
    }
    for (const PlacedEntry& each : catalog_order(body_, body_.merged.objects, rank)) {
      if (!is_new(each, rank)) continue;
      ObjectRecord record = from.objects[each.entry];
      Holder owner{rank, each.entry, kObjectPiece};
      if (each.group == kLocalEntry) {
        record.rank = static_cast<int32_t>(rank);
        record.size_bytes = sizes[each.entry];
      } else {
        owner.rank = body_.object_owner(each.group);
        const GroupMember& member = body_.member_of(body_.merged.objects, each.group, owner.rank);
        owner.entry = member.entry;
        record.size_bytes = body_.object(member).size_bytes;
      }
      record.place = owner.rank;
      SHW_RETURN_IF_ERROR(CatalogBuilder(&plan_.catalog)
                              .add_object(record, from.object_name(each.entry),
                                          from.texts.at(record.path),
                                          from.texts.at(record.content_type)));
      owners_.objects.push_back(owner);
    }
    return {};
  }

  // Holders may disagree on the type when nobody compared them; what is stored is the owner's.
  void take_types_of_owners() {
    Catalog& catalog = plan_.catalog;
    for (size_t i = 0; i < catalog.objects.size(); ++i) {
      const Holder& owner = owners_.objects[i];
      const Catalog& from = body_.ranks.of(static_cast<int32_t>(owner.rank)).catalog;
      const std::string_view type = from.texts.at(from.objects[owner.entry].content_type);
      if (catalog.texts.at(catalog.objects[i].content_type) != type)
        catalog.objects[i].content_type = catalog.texts.append(type);
    }
  }

  const SymbolicBody& body_;
  GlobalSavePlan plan_;
  Owners owners_;
  TensorRecord record_;  // of the tensor at hand
  std::span<const int64_t> shape_;
  std::vector<ExtentPair> pairs_;
};

}  // namespace

Result<GlobalSavePlan> expand_body(const SymbolicBody& body, std::string generation) {
  return Expansion(body).run(std::move(generation));
}

uint64_t listed_local_chunks(const SymbolicBody& body) {
  uint64_t chunks = 0;
  for (const SymbolicPart& part : body.ranks.parts) {
    const SymbolicDescription& description = body.ranks.of(part.rank);
    for (uint32_t t = 0; t < description.forms.size(); ++t) {
      const bool local = description.catalog.tensors[t].kind == EntryKind::kRankLocal;
      if (local && description.forms[t] == kBoxes)
        chunks += sorted_boxes(body.parts.boxes(part.rank, t)).size();
    }
  }
  return chunks;
}

}  // namespace shardwright::plan::internal
