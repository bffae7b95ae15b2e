// SPDX-License-Identifier: Apache-2.0
//
// Writes the catalog: per rank the entries that it lists for the first time, in that rank's order.
// Regular tensors are grids at once, whose splits and rank maps are made once per kind of tensor.
#include "core/plan/symbolic/expand_internal.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/plan/digest.h"
#include "core/plan/symbolic/rank_writes_internal.h"
#include "core/plan/wire/catalog_wire.h"

namespace shardwright::plan::internal {
namespace {

class StoredCatalog {
 public:
  explicit StoredCatalog(const SymbolicBody& body) : body_(body) {}

  Result<Catalog> run() {
    const auto ranks = static_cast<uint32_t>(body_.loads.size());
    for (uint32_t r = 0; r < ranks; ++r) add_tensors(r);
    for (uint32_t r = 0; r < ranks; ++r) SHW_RETURN_IF_ERROR(add_objects(r));
    take_types_of_owners();
    find_grids(&catalog_);  // also numbers splits and rank maps as explicit plans do
    return std::move(catalog_);
  }

 private:
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
        add_grid(each.group);
      }
      catalog_.tensors.push_back(record_);
    }
  }

  void begin_tensor(const Catalog& from, uint32_t entry, int32_t owner) {
    const TensorRecord& source = from.tensors[entry];
    const std::span<const int64_t> shape = from.shape(entry);
    record_ = source;
    record_.name = catalog_.texts.append(from.texts.at(source.name));
    record_.path = catalog_.texts.append(from.texts.at(source.path));
    record_.rank = owner;
    record_.shape_begin = catalog_.shapes.size();
    record_.split_mask = 0;
    record_.chunk_begin = catalog_.chunk_count();
    record_.chunk_count = 0;
    record_.box_begin = catalog_.boxes.size();
    record_.more_begin = catalog_.more.size();
    catalog_.shapes.insert(catalog_.shapes.end(), shape.begin(), shape.end());
    shape_ = shape;
  }

  void note_splits(std::span<const ExtentPair> box) {
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (box[d].size != shape_[d]) record_.split_mask |= uint64_t{1} << d;
    }
  }

  // After the split mask is known.
  void add_box(std::span<const ExtentPair> box, uint32_t rank) {
    ChunkRecord chunk;
    chunk.tensor = static_cast<uint32_t>(catalog_.tensors.size());
    chunk.place = rank;
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
        catalog_.more.push_back(box[d]);
      }
      ++k;
    }
    catalog_.boxes.push_back(chunk);
    ++record_.chunk_count;
  }

  void add_local_chunks(uint32_t entry, uint32_t rank) {
    const SymbolicDescription& description = body_.ranks.of(static_cast<int32_t>(rank));
    if (description.forms[entry] == kBoxes) {
      const std::vector<ListedBox> boxes =
          sorted_boxes(body_.parts.boxes(static_cast<int32_t>(rank), entry));
      for (const ListedBox& box : boxes) note_splits(box.extents);
      for (const ListedBox& box : boxes) add_box(box.extents, rank);
    } else if (element_count_of(shape_) != 0) {
      add_box(whole(), rank);
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
    for (size_t c = 0; c < listed.chunk_count(); ++c) add_box(listed.box(c), listed.owner(c).rank);
  }

  void add_grid(size_t group) {
    const TensorPlan& tensor = body_.tensors[group];
    const ShardGrid& grid = body_.grids[tensor.grid];
    record_.chunk_count = grid.chunk_count();
    if (record_.chunk_count == 0) return;
    record_.split_mask = grid.split_mask();
    record_.grid_begin = catalog_.grids.size();
    const std::vector<uint32_t>& splits = splits_of(tensor.grid);
    catalog_.grids.insert(catalog_.grids.end(), splits.begin(), splits.end());
    record_.rank_map = rank_map_of(tensor);
  }

  // Numbers of the grid's splits.
  const std::vector<uint32_t>& splits_of(uint32_t number) {
    const auto [known, is_new] = splits_.try_emplace(number);
    if (!is_new) return known->second;
    const ShardGrid& grid = body_.grids[number];
    for (int32_t d = 0; d < static_cast<int32_t>(shape_.size()); ++d) {
      if ((grid.split_mask() >> d & 1) == 0) continue;
      known->second.push_back(static_cast<uint32_t>(catalog_.splits.size()));
      catalog_.splits.push_back(DimSplit::of_sizes(grid.part_sizes(d)));
    }
    return known->second;
  }

  uint32_t rank_map_of(const TensorPlan& tensor) {
    const auto [known, is_new] = rank_maps_.try_emplace({tensor.grid, tensor.map, tensor.replica},
                                                        catalog_.rank_maps.size());
    if (!is_new) return known->second;
    const ShardGrid& grid = body_.grids[tensor.grid];
    ranks_.clear();
    for (uint64_t c = 0; c < grid.chunk_count(); ++c)
      ranks_.push_back(body_.maps[tensor.map].of(grid.column_of_chunk(c))[tensor.replica]);
    catalog_.rank_maps.push_back(RankMap::of(ranks_));
    return known->second;
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
      Owner owner{rank, each.entry};
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
      SHW_RETURN_IF_ERROR(CatalogBuilder(&catalog_).add_object(record, from.object_name(each.entry),
                                                               from.texts.at(record.path),
                                                               from.texts.at(record.content_type)));
      owners_.push_back(owner);
    }
    return {};
  }

  // Holders may disagree on the type when nobody compared them; what is stored is the owner's.
  void take_types_of_owners() {
    for (size_t i = 0; i < catalog_.objects.size(); ++i) {
      const Owner& owner = owners_[i];
      const Catalog& from = body_.ranks.of(static_cast<int32_t>(owner.rank)).catalog;
      const std::string_view type = from.texts.at(from.objects[owner.entry].content_type);
      if (catalog_.texts.at(catalog_.objects[i].content_type) != type)
        catalog_.objects[i].content_type = catalog_.texts.append(type);
    }
  }

  // Of an object: who writes it, and which of its objects it is.
  struct Owner {
    uint32_t rank = 0;
    uint32_t entry = 0;
  };

  const SymbolicBody& body_;
  Catalog catalog_;
  std::vector<Owner> owners_;  // of the objects
  TensorRecord record_;        // of the tensor at hand
  std::span<const int64_t> shape_;
  std::vector<ExtentPair> pairs_;
  std::vector<uint32_t> ranks_;
  std::map<uint32_t, std::vector<uint32_t>> splits_;                        // by grid
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> rank_maps_;  // by grid, map, replica
};

}  // namespace

Result<Catalog> stored_catalog(const SymbolicBody& body) {
  return StoredCatalog(body).run();
}

Result<GlobalSavePlan> expand_body(const SymbolicBody& body, std::string generation) {
  GlobalSavePlan plan;
  SHW_ASSIGN_OR_RETURN(plan.catalog, stored_catalog(body));
  SHW_ASSIGN_OR_RETURN(plan.plan_digest, catalog_digest(plan.catalog));
  plan.generation = std::move(generation);
  const size_t ranks = body.loads.size();
  plan.lists.resize(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    WriteList& list = plan.lists[r];
    list.rank = static_cast<int32_t>(r);
    list.world_size = static_cast<int32_t>(ranks);
    list.generation = plan.generation;
    list.plan_digest = plan.plan_digest;
    list.items = writes_of_rank(body, static_cast<uint32_t>(r));
  }
  return plan;
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
