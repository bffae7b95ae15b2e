// SPDX-License-Identifier: Apache-2.0
//
// What ranks that read for each other read of one tensor, and what comes to them from others: for
// each chunk the blocks that their boxes need are swept once, from the first to the last. Blocks
// that the same boxes need are divided together, so that nothing is done per block and rank.
//
// Who takes a block on its node, and which taker reads it, is chosen in a load where the least was
// taken and read so far (plan/load/exchange_routes.h): here each of them does an equal part. Over
// all choices a taker of n sends as much as it receives, (n - 1) / n of what it takes.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

using Boxes = std::span<const std::vector<ChunkFetch>>;
using CellSet = std::vector<uint32_t>;  // ascending

// A box that some ranks want begins or ends to need blocks of a chunk.
struct Edge {
  uint64_t block = 0;
  uint32_t cell = 0;
  bool begins = false;
};

// Bytes of the blocks that boxes need, by which of them need the block.
class BlockSweep {
 public:
  explicit BlockSweep(uint64_t block_bytes) : block_bytes_(block_bytes) {}

  void add(uint32_t cell, const ChunkFetch& need) {
    chunk_bytes_[need.chunk] = need.chunk_bytes;
    for (const BlockRange& range : need.blocks) {
      edges_[need.chunk].push_back({range.begin, cell, true});
      edges_[need.chunk].push_back({range.end, cell, false});
    }
  }

  std::map<CellSet, uint64_t> run() {
    for (auto& [chunk, edges] : edges_) sweep(&edges, chunk_bytes_[chunk]);
    return std::move(bytes_);
  }

 private:
  void sweep(std::vector<Edge>* edges, uint64_t chunk_bytes) {
    std::ranges::sort(*edges, {},
                      [](const Edge& edge) { return std::pair(edge.block, edge.cell); });
    CellSet open;
    for (size_t first = 0; first < edges->size();) {
      const uint64_t block = (*edges)[first].block;
      size_t last = first;
      while (last < edges->size() && (*edges)[last].block == block) ++last;
      turn(std::span(*edges).subspan(first, last - first), &open);
      first = last;
      if (open.empty()) continue;
      const uint64_t end = std::min((*edges)[first].block * block_bytes_, chunk_bytes);
      bytes_[open] += end - block * block_bytes_;
    }
  }

  // Edges of one block, by cell. A box that ends at a block does not begin there: its ranges of a
  // chunk are apart.
  static void turn(std::span<const Edge> edges, CellSet* open) {
    CellSet next;
    next.reserve(open->size() + edges.size());
    auto old = open->begin();
    for (const Edge& edge : edges) {
      while (old != open->end() && *old < edge.cell) next.push_back(*old++);
      if (edge.begins) {
        next.push_back(edge.cell);
      } else {
        ++old;
      }
    }
    next.insert(next.end(), old, open->end());
    *open = std::move(next);
  }

  const uint64_t block_bytes_;
  std::map<uint32_t, std::vector<Edge>> edges_;  // per chunk
  std::map<uint32_t, uint64_t> chunk_bytes_;     // likewise
  std::map<CellSet, uint64_t> bytes_;
};

// Equal parts of bytes: the next of those that are left.
class EqualParts {
 public:
  EqualParts(uint64_t bytes, size_t parts) : bytes_(bytes), parts_(parts) {}
  uint64_t next() {
    const uint64_t part = bytes_ / parts_--;
    bytes_ -= part;
    return part;
  }

 private:
  uint64_t bytes_;
  uint64_t parts_;
};

class Sharing {
 public:
  Sharing(const HeldCells& cells, Boxes boxes, const SharingRules& rules)
      : cells_(cells), boxes_(boxes), rules_(rules), made_(cells.ranks.size()) {}

  std::vector<HolderReads> run() {
    for (size_t begin = 0; begin < cells_.ranks.size();) {
      const size_t end = rules_.exchange == NodeExchange::kOff ? end_of_node(begin) : made_.size();
      // Nodes whose ranks want the same, as replicas do, read the same.
      const auto [known, is_new] = known_.emplace(wants_of(begin, end), begin);
      if (is_new) {
        share(begin, end);
      } else {
        std::copy_n(made_.begin() + static_cast<ptrdiff_t>(known->second), end - begin,
                    made_.begin() + static_cast<ptrdiff_t>(begin));
      }
      begin = end;
    }
    return std::move(made_);
  }

 private:
  int32_t node_of(size_t holder) const {
    return cells_.ranks[holder] / static_cast<int32_t>(rules_.ranks_per_node);
  }
  size_t end_of_node(size_t begin) const {
    size_t end = begin + 1;
    while (end < cells_.ranks.size() && node_of(end) == node_of(begin)) ++end;
    return end;
  }

  // The boxes of each holder, its number of them in front.
  std::vector<uint32_t> wants_of(size_t begin, size_t end) const {
    std::vector<uint32_t> wants;
    for (size_t holder = begin; holder < end; ++holder) {
      const std::span<const uint32_t> own = cells_.of(holder);
      wants.push_back(static_cast<uint32_t>(own.size()));
      wants.insert(wants.end(), own.begin(), own.end());
    }
    return wants;
  }

  // Holders [begin, end) read for each other.
  void share(size_t begin, size_t end) {
    std::map<uint32_t, std::vector<uint32_t>> holders_of;  // cell -> who wants it, ascending
    for (size_t holder = begin; holder < end; ++holder) {
      for (const uint32_t cell : cells_.of(holder))
        holders_of[cell].push_back(static_cast<uint32_t>(holder));
    }
    BlockSweep sweep(rules_.block_bytes);
    uint64_t wanted = 0;
    for (const auto& [cell, holders] : holders_of) {
      for (const ChunkFetch& need : boxes_[cell]) {
        wanted += need.fetch.wanted_bytes;
        sweep.add(cell, need);
      }
    }
    uint64_t read = 0;
    std::map<std::vector<uint32_t>, uint64_t> parts;  // who wants it -> bytes
    for (const auto& [cells, bytes] : sweep.run()) {
      std::vector<uint32_t> holders;
      for (const uint32_t cell : cells) {
        const std::vector<uint32_t>& more = holders_of[cell];
        holders.insert(holders.end(), more.begin(), more.end());
      }
      if (cells.size() > 1) {
        std::ranges::sort(holders);
        holders.erase(std::ranges::unique(holders).begin(), holders.end());
      }
      parts[std::move(holders)] += bytes;
      read += bytes;
    }
    for (const auto& [holders, bytes] : parts) divide(holders, bytes);
    // Boxes of one tensor may overlap, then less is wanted than they add up to.
    divide_over_read(std::span(made_).subspan(begin, end - begin), read,
                     read - std::min(read, wanted));
  }

  // On each node one of those that want a block takes it; one of all nodes reads it.
  void divide(const std::vector<uint32_t>& holders, uint64_t bytes) {
    std::vector<size_t> ends;  // of each node
    for (size_t i = 1; i <= holders.size(); ++i) {
      if (i == holders.size() || node_of(holders[i]) != node_of(holders[i - 1])) ends.push_back(i);
    }
    EqualParts reads(bytes, ends.size());
    size_t at = 0;
    for (const size_t end : ends) {
      EqualParts read(reads.next(), end - at);
      EqualParts taken(bytes, end - at);
      for (; at < end; ++at) {
        HolderReads& own = made_[holders[at]];
        const uint64_t own_read = read.next();
        const uint64_t own_taken = taken.next();  // not less: equal parts of no less
        own.read += own_read;
        own.received += own_taken - own_read;
        own.sent += own_taken - own_read;
        own.shared += bytes - own_taken;
      }
    }
  }

  // In proportion to what each reads.
  static void divide_over_read(std::span<HolderReads> holders, uint64_t read, uint64_t over) {
    uint64_t left = over;
    for (HolderReads& own : holders) {
      if (own.read == 0) continue;
      const double share = static_cast<double>(own.read) / static_cast<double>(read);
      own.over = std::min(
          {own.read, left, static_cast<uint64_t>(std::ceil(share * static_cast<double>(over)))});
      left -= own.over;
    }
  }

  const HeldCells& cells_;
  const Boxes boxes_;
  const SharingRules rules_;
  std::vector<HolderReads> made_;
  std::map<std::vector<uint32_t>, size_t> known_;  // what a node wants -> its first holder
};

}  // namespace

std::vector<HolderReads> share_reads(const HeldCells& cells,
                                     std::span<const std::vector<ChunkFetch>> boxes,
                                     const SharingRules& rules) {
  return Sharing(cells, boxes, rules).run();
}

}  // namespace shardwright::estimate::internal
