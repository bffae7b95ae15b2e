// SPDX-License-Identifier: Apache-2.0
//
// One merge of the lists of all ranks; a decision for each run of blocks that the same ranks want.
#include "core/exec/exchange_routes_internal.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>

#include <fmt/format.h>

#include "core/base/checked.h"

namespace shardwright::exec::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "lists travel in little-endian order");

auto place_of(const WantedBlock& block) {
  return std::tuple(block.file, block.offset, block.length);
}

uint64_t run_of(const WantedBlock& block) {
  return block.offset / kSharedRunBytes;
}

// Spreads the runs of files over the ranks (a finaliser of 64 bits).
uint64_t mix(const WantedBlock& block) {
  uint64_t value = run_of(block) * 0x9E3779B97F4A7C15U + block.file * 0xC2B2AE3D27D4EB4FU + 1;
  value = (value ^ value >> 31) * 0xBF58476D1CE4E5B9U;
  return value ^ value >> 29;
}

// The lists of all ranks as one: each block with who wants it.
class WantsMerge {
 public:
  explicit WantsMerge(std::span<const NodeWants> wants) : wants_(wants), next_(wants.size(), 0) {
    for (size_t rank = 0; rank < wants.size(); ++rank) push(rank);
  }

  // False at the end. ranks ascend.
  bool next(WantedBlock* block, std::vector<int32_t>* ranks) {
    ranks->clear();
    if (heap_.empty()) return false;
    *block = head(heap_.front());
    while (!heap_.empty() && place_of(head(heap_.front())) == place_of(*block)) {
      std::ranges::pop_heap(heap_, Later{*this});
      const size_t rank = heap_.back();
      heap_.pop_back();
      ranks->push_back(static_cast<int32_t>(rank));
      ++next_[rank];
      push(rank);
    }
    std::ranges::sort(*ranks);
    return true;
  }

 private:
  struct Later {
    const WantsMerge& merge;
    bool operator()(size_t a, size_t b) const {
      return place_of(merge.head(b)) < place_of(merge.head(a));
    }
  };
  const WantedBlock& head(size_t rank) const { return wants_[rank].blocks[next_[rank]]; }
  void push(size_t rank) {
    if (next_[rank] == wants_[rank].blocks.size()) return;
    heap_.push_back(rank);
    std::ranges::push_heap(heap_, Later{*this});
  }

  const std::span<const NodeWants> wants_;
  std::vector<size_t> next_;
  std::vector<size_t> heap_;
};

class RouteMaker {
 public:
  explicit RouteMaker(std::span<const NodeWants> wants)
      : wants_(wants), lists_(wants.size()), read_(wants.size(), 0), taken_(wants.size(), 0) {}

  void add(const WantedBlock& block, const std::vector<int32_t>& ranks) {
    const bool goes_on =
        has_last_ && block.file == last_.file && run_of(block) == run_of(last_) && ranks == ranks_;
    if (!goes_on) decide(block, ranks);
    last_ = block;
    has_last_ = true;
    for (const int32_t rank : ranks) lists_[static_cast<size_t>(rank)].routes.emplace_back();
    if (takers_.size() < 2) return;
    for (const int32_t rank : ranks) give_route(rank);
    read_[static_cast<size_t>(takers_.front())] += block.length;
    for (const int32_t taker : takers_) taken_[static_cast<size_t>(taker)] += block.length;
  }

  std::vector<RouteList> finish() { return std::move(lists_); }

 private:
  int32_t node_of(int32_t rank) const { return wants_[static_cast<size_t>(rank)].node; }

  // One taker per node; the first of them reads.
  void decide(const WantedBlock& block, const std::vector<int32_t>& ranks) {
    ranks_ = ranks;
    by_node_ = ranks;
    std::ranges::stable_sort(by_node_, {}, [this](int32_t rank) { return node_of(rank); });
    const uint64_t turn = mix(block) >> 32;
    takers_.clear();
    for (size_t begin = 0; begin < by_node_.size();) {
      size_t end = begin;
      while (end < by_node_.size() && node_of(by_node_[end]) == node_of(by_node_[begin])) ++end;
      const auto mates = std::span(by_node_).subspan(begin, end - begin);
      takers_.push_back(mates[least(mates, taken_, turn)]);
      begin = end;
    }
    const size_t reader = least(takers_, read_, turn);
    std::ranges::rotate(takers_, takers_.begin() + static_cast<ptrdiff_t>(reader));
  }

  // Of equal ones the first from the turn on, so that homes do not all choose the same.
  static size_t least(std::span<const int32_t> ranks, const std::vector<uint64_t>& bytes,
                      uint64_t turn) {
    size_t found = turn % ranks.size();
    for (size_t i = 1; i < ranks.size(); ++i) {
      const size_t at = (turn + i) % ranks.size();
      if (bytes[static_cast<size_t>(ranks[at])] < bytes[static_cast<size_t>(ranks[found])])
        found = at;
    }
    return found;
  }

  // The takers make a tree: that of number n sends to those of number n * kMostTargets + 1 and on.
  void give_route(int32_t rank) {
    const auto own =
        std::ranges::find(takers_, node_of(rank), [this](int32_t taker) { return node_of(taker); });
    RouteList& list = lists_[static_cast<size_t>(rank)];
    Route& route = list.routes.back();
    route.taker = *own;
    auto number = static_cast<size_t>(own - takers_.begin());
    if (rank == *own) {
      const size_t begin = std::min(number * kMostTargets + 1, takers_.size());
      const size_t end = std::min(begin + kMostTargets, takers_.size());
      for (size_t i = begin; i < end; ++i) list.targets.push_back(takers_[i]);
      route.targets = static_cast<uint32_t>(end - begin);
    }
    if (number > 0) route.source = takers_[(number - 1) / kMostTargets];
    for (; number > 0; number = (number - 1) / kMostTargets) ++route.step;
  }

  const std::span<const NodeWants> wants_;
  std::vector<RouteList> lists_;
  std::vector<uint64_t> read_;
  std::vector<uint64_t> taken_;
  // The last decision.
  bool has_last_ = false;
  WantedBlock last_;
  std::vector<int32_t> ranks_;
  std::vector<int32_t> by_node_;
  std::vector<int32_t> takers_;
};

Status unsound(std::string_view what) {
  return data_loss(fmt::format("what another rank said of its reads came damaged: {}", what));
}

template <typename T>
void append(std::vector<std::byte>* bytes, std::span<const T> values) {
  const auto more = std::as_bytes(values);
  bytes->insert(bytes->end(), more.begin(), more.end());
}

// The next `count` values; false when there are not so many.
template <typename T>
bool take(std::span<const std::byte>* bytes, size_t count, std::vector<T>* values) {
  if (count > bytes->size() / sizeof(T)) return false;
  values->resize(count);
  if (count > 0) std::memcpy(values->data(), bytes->data(), count * sizeof(T));
  *bytes = bytes->subspan(count * sizeof(T));
  return true;
}

bool is_rank(int32_t rank, int32_t world_size) {
  return rank >= 0 && rank < world_size;
}

}  // namespace

int32_t home_of(const WantedBlock& block, int32_t world_size) {
  return static_cast<int32_t>(mix(block) % static_cast<uint64_t>(world_size));
}

std::vector<RouteList> route_blocks(std::span<const NodeWants> wants) {
  WantsMerge merge(wants);
  RouteMaker maker(wants);
  WantedBlock block;
  std::vector<int32_t> ranks;
  while (merge.next(&block, &ranks)) maker.add(block, ranks);
  return maker.finish();
}

RouteList in_order(std::span<const WantedBlock> blocks, std::span<const RouteList> by_home,
                   int32_t world_size) {
  RouteList list;
  list.routes.reserve(blocks.size());
  std::vector<size_t> next(by_home.size(), 0);
  std::vector<size_t> next_target(by_home.size(), 0);
  for (const WantedBlock& block : blocks) {
    const auto home = static_cast<size_t>(home_of(block, world_size));
    const RouteList& answer = by_home[home];
    const Route& route = list.routes.emplace_back(answer.routes[next[home]++]);
    const auto targets = answer.targets.begin() + static_cast<ptrdiff_t>(next_target[home]);
    list.targets.insert(list.targets.end(), targets, targets + route.targets);
    next_target[home] += route.targets;
  }
  return list;
}

std::vector<std::byte> encode_wants(int32_t node, std::span<const WantedBlock> blocks) {
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof(node) + blocks.size_bytes());
  append(&bytes, std::span<const int32_t>(&node, 1));
  append(&bytes, blocks);
  return bytes;
}

Result<NodeWants> decode_wants(std::span<const std::byte> bytes, int32_t world_size) {
  std::vector<int32_t> node;
  NodeWants wants;
  if (!take(&bytes, 1, &node) || bytes.size() % sizeof(WantedBlock) != 0)
    return unsound("a list of blocks is cut short");
  wants.node = node.front();
  take(&bytes, bytes.size() / sizeof(WantedBlock), &wants.blocks);
  if (!is_rank(wants.node, world_size)) return unsound("no such node");
  const auto disordered = [](const WantedBlock& a, const WantedBlock& b) {
    return place_of(b) <= place_of(a);
  };
  if (std::ranges::adjacent_find(wants.blocks, disordered) != wants.blocks.end())
    return unsound("blocks out of order");
  return wants;
}

std::vector<std::byte> encode_routes(const RouteList& list) {
  std::vector<std::byte> bytes;
  bytes.reserve(list.routes.size() * sizeof(Route) + list.targets.size() * sizeof(int32_t));
  append(&bytes, std::span<const Route>(list.routes));
  append(&bytes, std::span<const int32_t>(list.targets));
  return bytes;
}

Result<RouteList> decode_routes(std::span<const std::byte> bytes, size_t wanted,
                                int32_t world_size) {
  RouteList list;
  if (!take(&bytes, wanted, &list.routes)) return unsound("routes are missing");
  uint64_t targets = 0;
  for (const Route& route : list.routes) {
    const bool sound =
        route.targets <= kMostTargets &&
        (route.is_exchanged() ? is_rank(route.taker, world_size) : route == Route()) &&
        (route.source == Route::kStored
             ? route.step == 0
             : is_rank(route.source, world_size) && route.step > 0 && route.step < 32);
    if (!sound) return unsound("a route that cannot be");
    targets += route.targets;
  }
  if (bytes.size() != targets * sizeof(int32_t) || !take(&bytes, targets, &list.targets))
    return unsound("targets are missing");
  for (const int32_t target : list.targets) {
    if (!is_rank(target, world_size)) return unsound("no such target");
  }
  return list;
}

}  // namespace shardwright::exec::internal
