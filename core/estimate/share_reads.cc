// SPDX-License-Identifier: Apache-2.0
//
// What the ranks of one machine read of one tensor, and who of them wants the same: for each chunk
// the blocks that its boxes need are swept once, from the first to the last.
#include <algorithm>
#include <map>

#include "core/estimate/estimate_internal.h"

namespace shardwright::estimate::internal {
namespace {

// A box that some ranks want begins or ends to need blocks of a chunk.
struct Edge {
  uint64_t block = 0;
  uint32_t cell = 0;
  bool begins = false;
};

class NodeSweep {
 public:
  NodeSweep(std::span<const std::vector<ChunkFetch>> boxes, uint64_t block_bytes)
      : boxes_(boxes), block_bytes_(block_bytes) {}

  NodeReads run(std::span<const std::span<const uint32_t>> cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      for (const uint32_t cell : cells[i]) wanted_by_[cell] |= uint64_t{1} << i;
    }
    for (const auto& [cell, ranks] : wanted_by_) {
      for (const ChunkFetch& need : boxes_[cell]) add(cell, need);
    }
    uint64_t read = 0;
    for (const auto& [chunk, edges] : edges_) sweep(edges, chunk_bytes_[chunk]);
    NodeReads made;
    for (const auto& [sharers, bytes] : bytes_) {
      made.parts.push_back({sharers, bytes});
      read += bytes;
    }
    // Boxes of one tensor may overlap, then less is wanted than they add up to.
    made.over_bytes = read - std::min(read, wanted_bytes_);
    return made;
  }

 private:
  void add(uint32_t cell, const ChunkFetch& need) {
    wanted_bytes_ += need.fetch.wanted_bytes;
    chunk_bytes_[need.chunk] = need.chunk_bytes;
    for (const BlockRange& range : need.blocks) {
      edges_[need.chunk].push_back({range.begin, cell, true});
      edges_[need.chunk].push_back({range.end, cell, false});
    }
  }

  void sweep(std::vector<Edge> edges, uint64_t chunk_bytes) {
    std::ranges::sort(edges, {}, &Edge::block);
    std::vector<uint32_t> open;
    for (size_t e = 0; e < edges.size(); ++e) {
      if (edges[e].begins) {
        open.push_back(edges[e].cell);
      } else {
        open.erase(std::ranges::find(open, edges[e].cell));
      }
      if (e + 1 == edges.size() || edges[e + 1].block == edges[e].block) continue;
      uint64_t sharers = 0;
      for (const uint32_t cell : open) sharers |= wanted_by_[cell];
      const uint64_t end = std::min(edges[e + 1].block * block_bytes_, chunk_bytes);
      if (sharers != 0) bytes_[sharers] += end - edges[e].block * block_bytes_;
    }
  }

  std::span<const std::vector<ChunkFetch>> boxes_;
  const uint64_t block_bytes_;
  uint64_t wanted_bytes_ = 0;
  std::map<uint32_t, uint64_t> wanted_by_;       // cell -> ranks
  std::map<uint32_t, std::vector<Edge>> edges_;  // per chunk
  std::map<uint32_t, uint64_t> chunk_bytes_;     // likewise
  std::map<uint64_t, uint64_t> bytes_;           // per set of sharers
};

}  // namespace

NodeReads share_node(std::span<const std::span<const uint32_t>> cells,
                     std::span<const std::vector<ChunkFetch>> boxes, uint64_t block_bytes) {
  return NodeSweep(boxes, block_bytes).run(cells);
}

}  // namespace shardwright::estimate::internal
