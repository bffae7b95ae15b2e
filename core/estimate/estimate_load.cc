// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are stored alike and wanted alike are matched once: what a box needs is counted per
// pair of stored and wanted class, and only added up per rank and tensor. So is what ranks read for
// each other, those of a machine or of all.
#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/estimate/estimate_internal.h"
#include "core/integrity/digest.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/exchange_routes.h"
#include "core/plan/load_plan.h"

namespace shardwright::estimate {
namespace {

using plan::Catalog;
using plan::CatalogIndex;
using plan::ChunkRecord;
using plan::ObjectRecord;
using plan::TensorRecord;

using internal::ChunkFetch;
using internal::Fetch;
using internal::HeldCells;
using internal::HolderReads;

// What the boxes of a class of tensors need, and where ranks share, what each of them reads.
struct ClassReads {
  std::vector<std::vector<ChunkFetch>> boxes;
  std::vector<Fetch> sums;           // of each box
  std::vector<HolderReads> holders;  // none where each reads alone
};

class LoadEstimation {
 public:
  LoadEstimation(const StoredCheckpoint& stored, const JobDescription& wanted, Estimate* estimate)
      : exchanges_(estimate->options.exchange != NodeExchange::kOff),
        shares_(estimate->options.ranks_per_node > 1 || exchanges_),
        stored_(stored),
        catalog_(stored.catalog),
        index_(stored.catalog),
        wanted_(wanted),
        cells_(wanted),
        estimate_(*estimate),
        files_(static_cast<size_t>(wanted.rank_count)) {}

  Status run() {
    const auto ranks = static_cast<size_t>(wanted_.rank_count);
    for (RankColumn* column : {&estimate_.held_bytes, &estimate_.moved_bytes, &estimate_.over_bytes,
                               &estimate_.shared_bytes, &estimate_.received_bytes,
                               &estimate_.sent_bytes, &estimate_.operations, &estimate_.files}) {
      column->assign(ranks, 0);
    }
    for (const JobTensor& tensor : wanted_.tensors) SHW_RETURN_IF_ERROR(add_tensor(tensor));
    for (const JobObject& object : wanted_.objects) SHW_RETURN_IF_ERROR(add_object(object));
    for (size_t r = 0; r < ranks; ++r) estimate_.files[r] = files_[r].size();
    return {};
  }

 private:
  // Number of a class of stored tensors: equal dtype, shape and chunks.
  uint32_t stored_class(size_t tensor) {
    const TensorRecord& record = catalog_.tensors[tensor];
    std::vector<std::byte> bytes;
    const auto append = [&bytes](const auto& value) {
      const auto* begin = reinterpret_cast<const std::byte*>(&value);
      bytes.insert(bytes.end(), begin, begin + sizeof value);
    };
    append(record.dtype);
    append(record.split_mask);
    append(record.is_grid());
    for (const int64_t extent : catalog_.shape(tensor)) append(extent);
    const auto split = static_cast<uint64_t>(__builtin_popcountll(record.split_mask));
    if (record.is_grid()) {
      for (uint64_t k = 0; k < split; ++k) append(catalog_.grids[record.grid_begin + k]);
      return class_number(bytes);
    }
    bytes.reserve(bytes.size() + 4 * sizeof(int64_t) * record.chunk_count);
    for (const ChunkRecord& chunk :
         std::span(catalog_.boxes).subspan(record.box_begin, record.chunk_count)) {
      append(chunk.offset0);
      append(chunk.size0);
      append(chunk.offset1);
      append(chunk.size1);
    }
    const uint64_t further = split > 2 ? (split - 2) * record.chunk_count : 0;
    for (uint64_t m = record.more_begin; m < record.more_begin + further; ++m)
      append(catalog_.more[m]);
    return class_number(bytes);
  }

  uint32_t class_number(std::span<const std::byte> bytes) {
    return classes_.emplace(integrity::xxh3_128(bytes), static_cast<uint32_t>(classes_.size()))
        .first->second;
  }

  // Ranks that share ask for whole blocks also where there are no digests.
  uint64_t block_bytes() const {
    const bool whole = shares_ && stored_.digest_block_bytes == 0;
    return whole ? kDigestBlockBytes : stored_.digest_block_bytes;
  }

  ClassReads reads_of(size_t tensor, const HeldCells& cells) const {
    const TensorRecord& record = catalog_.tensors[tensor];
    ClassReads made;
    made.boxes.resize(cells.boxes.size());
    made.sums.resize(cells.boxes.size());
    for (size_t b = 0; b < made.boxes.size(); ++b) {
      for (const uint64_t chunk : index_.chunks_meeting(tensor, cells.boxes[b])) {
        const Box stored = catalog_.chunk_box(chunk);
        ChunkFetch& need = made.boxes[b].emplace_back();
        need.chunk = static_cast<uint32_t>(chunk - record.chunk_begin);
        need.chunk_bytes = box_bytes(record.dtype, stored);
        need.fetch = internal::fetch_of(record.dtype, stored, intersect(stored, cells.boxes[b]),
                                        block_bytes(), shares_ ? &need.blocks : nullptr);
        made.sums[b].wanted_bytes += need.fetch.wanted_bytes;
        made.sums[b].fetched_bytes += need.fetch.fetched_bytes;
      }
    }
    if (shares_) {
      const EstimateOptions& options = estimate_.options;
      made.holders = internal::share_reads(
          cells, made.boxes, {block_bytes(), options.ranks_per_node, options.exchange});
    }
    return made;
  }

  int32_t node_of(int32_t rank) const {
    return rank / static_cast<int32_t>(estimate_.options.ranks_per_node);
  }

  Status not_stored(std::string_view name, int32_t rank) const {
    return not_found(
               fmt::format("'{}' is wanted by rank {} and not stored", escape_text(name), rank))
        .with_detail("tensor", name);
  }

  Status add_tensor(const JobTensor& tensor) {
    SHW_ASSIGN_OR_RETURN(const HeldCells* cells, cells_.of(tensor));
    if (tensor.kind == EntryKind::kRankLocal) return add_rank_local(tensor, *cells);
    const int64_t found = index_.find_tensor(tensor.name, -1);
    if (found < 0) return not_stored(tensor.name, cells->ranks.empty() ? 0 : cells->ranks[0]);
    const auto stored = static_cast<size_t>(found);
    if (tensor.layout == kHeldByBoxes) {
      add_reads(stored, *cells, reads_of(stored, *cells));
      return {};
    }
    const ClassKey key{stored_class(stored), {tensor.layout, tensor.shape}};
    auto known = reads_.find(key);
    if (known == reads_.end()) known = reads_.emplace(key, reads_of(stored, *cells)).first;
    add_reads(stored, *cells, known->second);
    return {};
  }

  Status add_rank_local(const JobTensor& tensor, const HeldCells& cells) {
    for (size_t i = 0; i < cells.ranks.size(); ++i) {
      const int64_t found = index_.find_tensor(tensor.name, cells.ranks[i]);
      if (found < 0) return not_stored(tensor.name, cells.ranks[i]);
      HeldCells own;
      own.ranks = {cells.ranks[i]};
      own.boxes = {whole_box(catalog_.shape(static_cast<size_t>(found)))};
      own.cell_begins = {0, 1};
      own.cells = {0};
      add_reads(static_cast<size_t>(found), own, reads_of(static_cast<size_t>(found), own));
    }
    return {};
  }

  void add_reads(size_t tensor, const HeldCells& cells, const ClassReads& reads) {
    const TensorRecord& record = catalog_.tensors[tensor];
    for (size_t i = 0; i < cells.ranks.size(); ++i) {
      const auto rank = static_cast<size_t>(cells.ranks[i]);
      for (const uint32_t cell : cells.of(i)) {
        const Fetch& need = reads.sums[cell];
        estimate_.held_bytes[rank] += need.wanted_bytes;
        if (!shares_) estimate_.moved_bytes[rank] += need.fetched_bytes;
        if (!shares_) estimate_.over_bytes[rank] += need.fetched_bytes - need.wanted_bytes;
        estimate_.operations[rank] += reads.boxes[cell].size();
        for (const ChunkFetch& each : reads.boxes[cell])
          note_file(rank, catalog_.place_of(tensor, record.chunk_begin + each.chunk));
      }
    }
    for (size_t i = 0; i < reads.holders.size(); ++i) {
      const auto rank = static_cast<size_t>(cells.ranks[i]);
      const HolderReads& own = reads.holders[i];
      estimate_.moved_bytes[rank] += own.read;
      estimate_.over_bytes[rank] += own.over;
      estimate_.shared_bytes[rank] += own.shared;
      estimate_.received_bytes[rank] += own.received;
      estimate_.sent_bytes[rank] += own.sent;
    }
  }

  Status add_object(const JobObject& object) {
    const bool own = object.kind == EntryKind::kRankLocal;
    std::vector<int32_t> takers;  // of each node the first rank that wants it
    uint64_t size_bytes = 0;
    for (const int32_t rank : layout_ranks(*wanted_.layouts[object.layout].layout)) {
      const int64_t found = index_.find_object(object.name, own ? rank : -1);
      if (found < 0) return not_stored(object.name, rank);
      const ObjectRecord& stored = catalog_.objects[static_cast<size_t>(found)];
      const auto r = static_cast<size_t>(rank);
      size_bytes = stored.size_bytes;
      estimate_.held_bytes[r] += size_bytes;
      ++estimate_.operations[r];
      note_file(r, stored.place);
      if (own || !shares_) {
        estimate_.moved_bytes[r] += size_bytes;
      } else if (!takers.empty() && node_of(rank) == node_of(takers.back())) {
        estimate_.shared_bytes[r] += size_bytes;
      } else {
        const bool receives = exchanges_ && !takers.empty();
        (receives ? estimate_.received_bytes : estimate_.moved_bytes)[r] += size_bytes;
        takers.push_back(rank);
      }
    }
    if (exchanges_) add_sends(takers, size_bytes);
    return {};
  }

  // The first taker reads.
  void add_sends(std::span<const int32_t> takers, uint64_t size_bytes) {
    for (size_t number = 0; number < takers.size(); ++number) {
      const plan::TargetNumbers targets = plan::targets_of(number, takers.size());
      estimate_.sent_bytes[static_cast<size_t>(takers[number])] +=
          (targets.end - targets.begin) * size_bytes;
    }
  }

  void note_file(size_t rank, uint32_t file) {
    std::vector<uint32_t>& files = files_[rank];
    const auto at = std::ranges::lower_bound(files, file);
    if (at == files.end() || *at != file) files.insert(at, file);
  }

  using ClassKey = std::pair<uint32_t, std::pair<uint32_t, Dims>>;
  const bool exchanges_;
  const bool shares_;
  const StoredCheckpoint& stored_;
  const Catalog& catalog_;
  CatalogIndex index_;
  const JobDescription& wanted_;
  internal::HeldCellsCache cells_;
  Estimate& estimate_;
  std::vector<std::vector<uint32_t>> files_;  // per rank, ascending
  std::map<Digest128, uint32_t> classes_;
  std::map<ClassKey, ClassReads> reads_;
};

}  // namespace

Result<std::shared_ptr<const StoredCheckpoint>> stored_checkpoint(const JobDescription& job,
                                                                  const EstimateOptions& options) {
  if (job.stored != nullptr) return job.stored;
  SHW_ASSIGN_OR_RETURN(SimulatedSave save, simulate_save(job, options));
  auto stored = std::make_shared<StoredCheckpoint>();
  stored->catalog = std::move(save.plan.catalog);
  stored->file_count = save.estimate.file_count;
  stored->generation = std::move(save.plan.generation);
  stored->digest_block_bytes = kDigestBlockBytes;
  return std::shared_ptr<const StoredCheckpoint>(std::move(stored));
}

Result<Estimate> estimate_load(const StoredCheckpoint& stored, const JobDescription& wanted,
                               const EstimateOptions& options) {
  Estimate estimate;
  estimate.is_load = true;
  estimate.rank_count = wanted.rank_count;
  estimate.options = options;
  estimate.tensor_count = stored.catalog.tensors.size();
  estimate.object_count = stored.catalog.objects.size();
  estimate.chunk_count = stored.catalog.chunk_count();
  estimate.file_count = stored.file_count;
  estimate.stored_bytes = stored.catalog.payload_bytes();
  SHW_RETURN_IF_ERROR(LoadEstimation(stored, wanted, &estimate).run());
  internal::add_memory(&estimate);
  SHW_ASSIGN_OR_RETURN(estimate.groups,
                       internal::tensor_groups_of(wanted, options.listed_chunks,
                                                  [](auto, const Box&) { return -1; }));
  return estimate;
}

}  // namespace shardwright::estimate
