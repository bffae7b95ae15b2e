// SPDX-License-Identifier: Apache-2.0
//
// Who writes what several ranks hold. Looking at every holder of every chunk is linear in what was
// listed, so no heap is needed; the sort by size makes it O(n log n).
#include <algorithm>

#include "core/plan/flat_chunks_internal.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

// Bytes that each rank writes so far.
using Loads = std::vector<uint64_t>;

const Holder& lightest(std::span<const Holder> holders, const Loads& loads) {
  const Holder* best = &holders[0];
  for (const Holder& holder : holders) {
    if (loads[holder.rank] < loads[best->rank]) best = &holder;
  }
  return *best;
}

// Chooses a holder for items 0..sizes.size(). holders_of: item -> its holders, ascending rank.
template <typename HoldersOf>
std::vector<Holder> balance(const std::vector<uint64_t>& sizes, const HoldersOf& holders_of,
                            Loads* loads) {
  std::vector<Holder> owners(sizes.size());
  std::vector<uint32_t> open;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::span<const Holder> holders = holders_of(i);
    if (holders.size() > 1) {
      open.push_back(static_cast<uint32_t>(i));
      continue;
    }
    owners[i] = holders[0];
    (*loads)[holders[0].rank] += sizes[i];
  }
  std::stable_sort(open.begin(), open.end(),
                   [&](uint32_t a, uint32_t b) { return sizes[a] > sizes[b]; });
  for (const uint32_t i : open) {
    owners[i] = lightest(holders_of(i), *loads);
    (*loads)[owners[i].rank] += sizes[i];
  }
  return owners;
}

template <typename HoldersOf>
std::vector<Holder> lowest(size_t count, const HoldersOf& holders_of) {
  std::vector<Holder> owners(count);
  for (size_t i = 0; i < count; ++i) owners[i] = holders_of(i)[0];
  return owners;
}

std::vector<uint64_t> chunk_sizes(const Catalog& catalog) {
  std::vector<uint64_t> sizes(catalog.chunks.size());
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const TensorRecord& tensor = catalog.tensors[t];
    const SplitDims split = split_dims(catalog, t);
    const auto bits = static_cast<uint64_t>(dtype_bits(tensor.dtype));
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c) {
      sizes[c] = packed_bytes(bits, chunk_elements(catalog, tensor, split, c));
    }
  }
  return sizes;
}

// Holders may disagree on size and type when nobody compared them; what is stored is the owner's.
void take_from_owner(const LocalSavePlan& local, const Holder& owner, Catalog* catalog,
                     ObjectRecord* record) {
  const ObjectRecord& own = local.catalog.objects[owner.entry];
  record->size_bytes = own.size_bytes;
  const std::string_view type = local.catalog.texts.at(own.content_type);
  if (catalog->texts.at(record->content_type) != type)
    record->content_type = catalog->texts.append(type);
}

}  // namespace

Owners choose_owners(std::span<const LocalSavePlan> locals, OwnerRule rule, Deduplicated* merged) {
  const auto chunk_holders = [merged](size_t i) { return merged->holders_of_chunk(i); };
  const auto object_holders = [merged](size_t i) { return merged->holders_of_object(i); };
  Catalog& catalog = merged->catalog;
  Owners owners;
  if (rule == OwnerRule::kLowestRank) {
    owners.chunks = lowest(catalog.chunks.size(), chunk_holders);
    owners.objects = lowest(catalog.objects.size(), object_holders);
  } else {
    Loads loads(locals.size(), 0);
    std::vector<uint64_t> object_sizes(catalog.objects.size());
    for (size_t i = 0; i < object_sizes.size(); ++i)
      object_sizes[i] = catalog.objects[i].size_bytes;
    owners.chunks = balance(chunk_sizes(catalog), chunk_holders, &loads);
    owners.objects = balance(object_sizes, object_holders, &loads);
  }
  for (size_t i = 0; i < catalog.chunks.size(); ++i)
    catalog.chunks[i].place = owners.chunks[i].rank;
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    catalog.objects[i].place = owners.objects[i].rank;
    take_from_owner(locals[owners.objects[i].rank], owners.objects[i], &catalog,
                    &catalog.objects[i]);
  }
  return owners;
}

}  // namespace shardwright::plan::internal
