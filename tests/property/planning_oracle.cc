// SPDX-License-Identifier: Apache-2.0
#include "tests/property/planning_oracle.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "core/plan/rank_plans.h"
#include "tests/core/plan/kept.h"
#include "tests/core/plan/read_list.h"

namespace shardwright::plan::test {
namespace {

// Calls visit(row-major number in a tensor of this shape) for each element of the box.
template <typename Visit>
void for_each_element(const Dims& shape, const Box& box, const Visit& visit) {
  const int64_t count = box_element_count(box);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t number = 0;
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      number += (box.offsets[d] + rest % box.sizes[d]) * stride;
      rest /= box.sizes[d];
    }
    visit(static_cast<size_t>(number));
  }
}

size_t element_count(const Dims& shape) {
  return static_cast<size_t>(element_count_of(shape));
}

// Distinct boxes with elements, and the ranks that hold each, ascending.
using BoxHolders = std::map<Box, std::vector<int32_t>>;

BoxHolders holders_of(const TensorWorld& tensor) {
  BoxHolders holders;
  for (size_t r = 0; r < tensor.boxes.size(); ++r) {
    for (const Box& each : tensor.boxes[r]) {
      if (!box_is_empty(each)) holders[each].push_back(static_cast<int32_t>(r));
    }
  }
  return holders;
}

// The tensor as the catalog has it: shared ones once, rank_local ones once per rank.
struct Stored {
  const TensorWorld* tensor = nullptr;
  int32_t rank = -1;
};

BoxHolders holders_of(const Stored& stored) {
  if (stored.rank < 0) return holders_of(*stored.tensor);
  BoxHolders holders;
  for (const Box& each : stored.tensor->boxes[static_cast<size_t>(stored.rank)]) {
    if (!box_is_empty(each)) holders[each].push_back(stored.rank);
  }
  return holders;
}

std::vector<Stored> stored_tensors(const World& world) {
  std::vector<Stored> all;
  for (const TensorWorld& tensor : world.tensors) {
    if (tensor.kind != EntryKind::kRankLocal) {
      if (std::ranges::count(tensor.listed, true) > 0) all.push_back({&tensor, -1});
      continue;
    }
    for (int32_t r = 0; r < world.ranks; ++r) {
      if (tensor.listed[static_cast<size_t>(r)]) all.push_back({&tensor, r});
    }
  }
  return all;
}

int64_t find_tensor(const Catalog& catalog, std::string_view name, int32_t rank) {
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    if (catalog.tensor_name(t) == name && catalog.tensors[t].rank == rank)
      return static_cast<int64_t>(t);
  }
  return -1;
}

// First chunk of each element, or -1; wrong: an element in chunks that differ, or a chunk outside.
std::vector<int64_t> chunk_of_elements(const Catalog& catalog, size_t tensor, std::string* wrong) {
  const Dims shape(catalog.shape(tensor));
  std::vector<int64_t> chunk_of(element_count(shape), -1);
  const TensorRecord& record = catalog.tensors[tensor];
  for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
    if (!check_box(catalog.chunk_box(c), shape).ok()) {
      *wrong = fmt::format("chunk {} leaves tensor {}", c, catalog.tensor_name(tensor));
      continue;
    }
    for_each_element(shape, catalog.chunk_box(c), [&](size_t element) {
      int64_t& chunk = chunk_of[element];
      if (chunk >= 0 && catalog.chunk_box(static_cast<size_t>(chunk)) != catalog.chunk_box(c))
        *wrong = fmt::format("element {} of tensor {} lies in two chunks that differ", element,
                             catalog.tensor_name(tensor));
      if (chunk < 0) chunk = static_cast<int64_t>(c);
    });
  }
  return chunk_of;
}

// Balanced owners by trying every replica of what is open, one entry after the other.
class SlowBalance {
 public:
  explicit SlowBalance(int32_t ranks) : loads_(static_cast<size_t>(ranks), 0) {}

  struct Item {
    uint64_t bytes = 0;
    std::vector<int32_t> holders;
    size_t entry = 0;  // items of one entry follow each other
  };
  std::vector<int32_t> owners(const std::vector<Item>& items) {
    std::vector<int32_t> owners(items.size(), -1);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].holders.size() == 1) give(items[i], 0, &owners[i]);
    }
    while (true) {
      std::vector<size_t> largest;
      for (size_t i = 0; i < items.size(); ++i) {
        if (owners[i] >= 0) continue;
        std::vector<size_t> together = given_together(items, i);
        if (largest.empty() || most_bytes(items, together) > most_bytes(items, largest))
          largest = std::move(together);
      }
      if (largest.empty()) return owners;
      const size_t replica = lightest(items, largest);
      for (const size_t i : largest) give(items[i], replica, &owners[i]);
    }
  }

 private:
  // All items of the entry when they have equally many holders, and several; else the one.
  static std::vector<size_t> given_together(const std::vector<Item>& items, size_t item) {
    std::vector<size_t> all;
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].entry != items[item].entry) continue;
      if (items[i].holders.size() != items[item].holders.size()) return {item};
      all.push_back(i);
    }
    return all;
  }

  static uint64_t most_bytes(const std::vector<Item>& items, const std::vector<size_t>& some) {
    uint64_t most = 0;
    for (const size_t i : some) most = std::max(most, items[i].bytes);
    return most;
  }

  size_t lightest(const std::vector<Item>& items, const std::vector<size_t>& some) const {
    std::vector<uint64_t> sums(items[some[0]].holders.size(), 0);
    for (const size_t i : some) {
      for (size_t k = 0; k < sums.size(); ++k)
        sums[k] += loads_[static_cast<size_t>(items[i].holders[k])];
    }
    return static_cast<size_t>(std::ranges::min_element(sums) - sums.begin());
  }

  void give(const Item& item, size_t replica, int32_t* owner) {
    *owner = item.holders[replica];
    loads_[static_cast<size_t>(*owner)] += item.bytes;
  }
  std::vector<uint64_t> loads_;
};

class SaveCheck {
 public:
  SaveCheck(const World& world, OwnerRule owner, const GlobalSavePlan& plan)
      : world_(world), owner_(owner), catalog_(plan.catalog) {}

  std::string run() {
    const std::vector<Stored> all = stored_tensors(world_);
    if (all.size() != catalog_.tensors.size())
      return fmt::format("{} tensors are stored, not {}", catalog_.tensors.size(), all.size());
    chunks_.resize(catalog_.chunk_count());
    for (const Stored& stored : all) {
      std::string wrong = check_tensor(stored);
      if (!wrong.empty()) return wrong;
    }
    std::string wrong = check_objects();
    return wrong.empty() ? check_owners() : wrong;
  }

 private:
  std::string check_tensor(const Stored& stored) {
    const std::string& name = stored.tensor->name;
    const int64_t found = find_tensor(catalog_, name, stored.rank);
    if (found < 0) return fmt::format("tensor {} of rank {} is not stored", name, stored.rank);
    const auto tensor = static_cast<size_t>(found);
    if (Dims(catalog_.shape(tensor)) != stored.tensor->shape ||
        catalog_.tensors[tensor].dtype != stored.tensor->dtype)
      return fmt::format("tensor {} is stored with another shape or dtype", name);
    std::string wrong;
    for (const int64_t chunk : chunk_of_elements(catalog_, tensor, &wrong)) {
      if (chunk < 0) return fmt::format("an element of tensor {} is in no chunk", name);
    }
    if (!wrong.empty()) return wrong;
    return check_chunks(tensor, holders_of(stored));
  }

  // Each box is stored once, or, with owner = all, by each of its holders.
  std::string check_chunks(size_t tensor, const BoxHolders& holders) {
    BoxHolders writers;
    const TensorRecord& record = catalog_.tensors[tensor];
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      const Box box = catalog_.chunk_box(c);
      const auto held = holders.find(box);
      if (held == holders.end()) return fmt::format("nobody holds chunk {} {}", c, box_text(box));
      chunks_[c] = {catalog_.chunk_bytes(c), held->second, tensor};
      writers[box].push_back(static_cast<int32_t>(catalog_.place_of(c)));
    }
    for (auto& [box, ranks] : writers) {
      std::ranges::sort(ranks);
      const bool right = owner_ == OwnerRule::kAll ? ranks == holders.at(box) : ranks.size() == 1;
      if (!right) return fmt::format("box {} is stored by {} ranks", box_text(box), ranks.size());
    }
    return "";
  }

  std::string check_objects() {
    objects_.resize(catalog_.objects.size());
    size_t expected = 0;
    for (const ObjectWorld& object : world_.objects) {
      std::vector<int32_t> holders;
      for (int32_t r = 0; r < world_.ranks; ++r) {
        if (object.listed[static_cast<size_t>(r)]) holders.push_back(r);
      }
      const bool own = object.kind == EntryKind::kRankLocal;
      expected += own ? holders.size() : 1;
      for (size_t i = 0; i < catalog_.objects.size(); ++i) {
        if (catalog_.object_name(i) != object.name) continue;
        const int32_t rank = catalog_.objects[i].rank;
        if (own != (rank >= 0)) return fmt::format("object {} belongs to {}", object.name, rank);
        objects_[i].holders = own ? std::vector<int32_t>{rank} : holders;
        objects_[i].bytes = object.bytes.size();
        objects_[i].entry = i;
        if (catalog_.objects[i].size_bytes != object.bytes.size())
          return fmt::format("object {} has another size", object.name);
      }
    }
    if (expected == catalog_.objects.size()) return "";
    return fmt::format("{} objects are stored, not {}", catalog_.objects.size(), expected);
  }

  std::string check_owners() {
    SlowBalance balance(world_.ranks);
    const auto check = [&](std::string_view noun, const std::vector<SlowBalance::Item>& items,
                           const auto& place_of) -> std::string {
      std::vector<int32_t> balanced;
      if (owner_ == OwnerRule::kBalanced) balanced = balance.owners(items);
      for (size_t i = 0; i < items.size(); ++i) {
        const int32_t found = static_cast<int32_t>(place_of(i));
        bool right = std::ranges::count(items[i].holders, found) == 1;
        if (owner_ == OwnerRule::kBalanced) right = found == balanced[i];
        if (owner_ == OwnerRule::kLowestRank) right = found == items[i].holders[0];
        if (!right) return fmt::format("{} {} is written by rank {}", noun, i, found);
      }
      return "";
    };
    const std::string wrong =
        check("chunk", chunks_, [this](size_t i) { return catalog_.place_of(i); });
    if (!wrong.empty()) return wrong;
    return check("object", objects_, [this](size_t i) { return catalog_.objects[i].place; });
  }

  const World& world_;
  const OwnerRule owner_;
  const Catalog& catalog_;
  std::vector<SlowBalance::Item> chunks_;
  std::vector<SlowBalance::Item> objects_;
};

class KeptCheck {
 public:
  KeptCheck(const World& world, OwnerRule owner, const GlobalSavePlan& merged)
      : world_(world), owner_(owner), merged_(merged.catalog) {}

  std::string run(const std::vector<LocalPlan>& plans, const std::vector<Numbers>& kept) {
    if (plans.size() != static_cast<size_t>(world_.ranks) || kept.size() != plans.size())
      return fmt::format("{} ranks keep something", kept.size());
    for (size_t r = 0; r < plans.size(); ++r) {
      bool fits = false;
      const Items items = items_of(plans[r], kept[r], &fits);
      if (!fits) return fmt::format("rank {} has {} numbers", r, kept[r].size());
      if (items != expected(static_cast<int32_t>(r)))
        return fmt::format("rank {} keeps other items", r);
    }
    return "";
  }

 private:
  // Name, owner rank, number and box of a chunk; an object has number -1.
  using Item = std::tuple<std::string, int32_t, int64_t, Box>;
  using Items = std::multiset<Item>;

  static Items items_of(const LocalPlan& plan, std::span<const uint32_t> kept, bool* fits) {
    const Description& description = plan.description;
    const Catalog& catalog = description.catalog;
    const EntryNumbers numbers(description);
    const PartView part = view_of(plan.part);
    const RankView rank{description, numbers, part, static_cast<uint32_t>(part.rank)};
    // Of a rank_local entry the description has rank 0, which stands for each rank.
    const auto owner = [&](int32_t own) { return own == 0 ? part.rank : own; };
    const size_t objects = catalog.objects.size();
    Items items;
    for (const auto& [item, number] : kept_items(rank, kept, fits)) {
      if (item >= part.boxes.size() && item < part.boxes.size() + objects) {
        const size_t i = item - part.boxes.size();
        items.emplace(catalog.object_name(i), owner(catalog.objects[i].rank), -1, Box());
        continue;
      }
      const size_t t =
          item < part.boxes.size() ? part.boxes[item].tensor : item - part.boxes.size() - objects;
      items.emplace(catalog.tensor_name(t), owner(catalog.tensors[t].rank), int64_t{number},
                    rank.box_of(item));
    }
    return items;
  }

  Items expected(int32_t rank) const {
    Items items;
    for (size_t c = 0; c < merged_.chunk_count(); ++c) {
      const size_t number = merged_.tensor_of(c);
      const TensorRecord& tensor = merged_.tensors[number];
      if (static_cast<int32_t>(merged_.place_of(c)) != rank) continue;
      items.emplace(merged_.tensor_name(number), tensor.rank,
                    static_cast<int64_t>(c - tensor.chunk_begin), merged_.chunk_box(c));
    }
    for (size_t i = 0; i < merged_.objects.size(); ++i) {
      const ObjectRecord& object = merged_.objects[i];
      const bool own = static_cast<int32_t>(object.place) == rank;
      if (own ||
          (owner_ == OwnerRule::kAll && has_object(merged_.object_name(i), rank, object.rank)))
        items.emplace(merged_.object_name(i), object.rank, -1, Box());
    }
    return items;
  }

  // owner: of a rank_local object, else -1.
  bool has_object(std::string_view name, int32_t rank, int32_t owner) const {
    if (owner >= 0) return owner == rank;
    return std::ranges::any_of(world_.objects, [&](const ObjectWorld& object) {
      return object.name == name && object.listed[static_cast<size_t>(rank)];
    });
  }

  const World& world_;
  const OwnerRule owner_;
  const Catalog& merged_;
};

bool is_stored_for(const World& world, std::string_view name, int32_t rank) {
  const auto listed = [&](const auto& entries) {
    return std::ranges::any_of(entries, [&](const auto& entry) {
      if (entry.name != name) return false;
      if (entry.kind != EntryKind::kRankLocal) return std::ranges::count(entry.listed, true) > 0;
      return rank < world.ranks && entry.listed[static_cast<size_t>(rank)];
    });
  };
  return listed(world.tensors) || listed(world.objects);
}

std::string check_names(const World& stored, const World& wanted, int32_t rank,
                        const LoadPlan& plan) {
  std::set<std::string> names;
  std::set<std::string> loaded;
  std::set<std::string> missing;
  std::set<std::string> unexpected;
  const auto add = [&](const auto& entries) {
    for (const auto& entry : entries) {
      if (!entry.listed[static_cast<size_t>(rank)]) continue;
      names.insert(entry.name);
      (is_stored_for(stored, entry.name, rank) ? loaded : missing).insert(entry.name);
    }
  };
  add(wanted.tensors);
  add(wanted.objects);
  const auto look = [&](const auto& entries) {
    for (const auto& entry : entries) {
      if (is_stored_for(stored, entry.name, rank) && !names.contains(entry.name))
        unexpected.insert(entry.name);
    }
  };
  look(stored.tensors);
  look(stored.objects);
  const auto is = [](const std::vector<std::string>& list, const std::set<std::string>& expected) {
    return std::set<std::string>(list.begin(), list.end()) == expected &&
           list.size() == expected.size();
  };
  if (!is(plan.loaded, loaded)) return "other names are loaded";
  if (!is(plan.missing, missing)) return "other names are missing";
  if (!is(plan.unexpected, unexpected)) return "other names are unexpected";
  return "";
}

// Reads by entry name and piece.
using ReadsOfPiece = std::map<std::tuple<std::string, uint32_t>, std::vector<ReadItem>>;

// Elements of the piece in the stored tensor, each from the chunk that holds it.
std::string check_piece(const Catalog& catalog, size_t tensor, const Box& piece,
                        const std::vector<ReadItem>& reads) {
  const Dims shape(catalog.shape(tensor));
  std::string twice;
  const std::vector<int64_t> chunk_of = chunk_of_elements(catalog, tensor, &twice);
  std::vector<int64_t> read_from(chunk_of.size(), -1);
  for (const ReadItem& read : reads) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (read.box.offsets[d] + read.box.sizes[d] > shape[d]) return "a read leaves the tensor";
    }
    for_each_element(shape, read.box, [&](size_t element) {
      if (read_from[element] >= 0) twice = "an element is read twice";
      read_from[element] = static_cast<int64_t>(read.chunk);
    });
  }
  if (!twice.empty()) return twice;
  for (size_t element = 0; element < chunk_of.size(); ++element) {
    auto rest = static_cast<int64_t>(element);
    bool wanted = true;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
      const int64_t at = rest % shape[d];
      wanted = wanted && at >= piece.offsets[d] && at < piece.offsets[d] + piece.sizes[d];
    }
    const int64_t expected = wanted ? chunk_of[element] : -1;
    if (read_from[element] != expected)
      return fmt::format("element {} is read from chunk {}, not {}", element, read_from[element],
                         expected);
  }
  return "";
}

}  // namespace

std::string reason_to_refuse(const World& world) {
  for (const TensorWorld& tensor : world.tensors) {
    if (tensor.kind != EntryKind::kSharded || std::ranges::count(tensor.listed, true) == 0)
      continue;
    std::vector<int> covered(element_count(tensor.shape), 0);
    for (const auto& [box, ranks] : holders_of(tensor))
      for_each_element(tensor.shape, box, [&](size_t element) { ++covered[element]; });
    for (const int count : covered) {
      if (count != 1) return fmt::format("{} boxes hold an element of {}", count, tensor.name);
    }
  }
  return "";
}

std::string check_save(const World& world, OwnerRule owner, const GlobalSavePlan& plan) {
  return SaveCheck(world, owner, plan).run();
}

std::string check_kept(const World& world, OwnerRule owner, const GlobalSavePlan& merged,
                       const std::vector<LocalPlan>& plans, const std::vector<Numbers>& kept) {
  return KeptCheck(world, owner, merged).run(plans, kept);
}

std::string check_load(const World& stored, const Catalog& catalog, const World& wanted,
                       int32_t rank, const LoadPlan& plan) {
  std::string wrong = check_names(stored, wanted, rank, plan);
  if (!wrong.empty()) return wrong;
  std::vector<const TensorWorld*> entries;  // in the order of the rank's state
  for (const TensorWorld& tensor : wanted.tensors) {
    if (tensor.listed[static_cast<size_t>(rank)]) entries.push_back(&tensor);
  }
  if (wanted.reversed[static_cast<size_t>(rank)]) std::ranges::reverse(entries);
  ReadsOfPiece reads;
  for (const ReadItem& read : plan::test::reads_of(plan))
    reads[{entries[read.entry]->name, read.piece}].push_back(read);
  for (const TensorWorld* entry : entries) {
    const int64_t own = find_tensor(catalog, entry->name, rank);
    const int64_t found = own >= 0 ? own : find_tensor(catalog, entry->name, -1);
    if (found < 0) continue;
    const std::vector<Box>& pieces = entry->boxes[static_cast<size_t>(rank)];
    for (uint32_t p = 0; p < pieces.size(); ++p) {
      wrong = check_piece(catalog, static_cast<size_t>(found), pieces[p], reads[{entry->name, p}]);
      if (!wrong.empty()) return fmt::format("{} piece {}: {}", entry->name, p, wrong);
    }
  }
  return "";
}

}  // namespace shardwright::plan::test
