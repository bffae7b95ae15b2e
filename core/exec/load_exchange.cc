// SPDX-License-Identifier: Apache-2.0
#include "core/exec/load_exchange_internal.h"

#include <algorithm>
#include <utility>

#include "core/base/without_exceptions.h"
#include "core/plan/wire/wire.h"

namespace shardwright::exec::internal {
namespace {

// Tags of the steps that ranks take together.
constexpr uint32_t kTagNodes = 0x4C20;
constexpr uint32_t kTagWants = 0x4C21;
constexpr uint32_t kTagRoutes = 0x4C22;
constexpr uint32_t kTagSpan = 0x4C23;
constexpr uint32_t kTagMemory = 0x4C24;
constexpr uint32_t kTagCosts = 0x4C25;
constexpr uint32_t kTagTrial = 0x4C26;
constexpr uint32_t kTagPlanned = 0x4C27;
constexpr uint32_t kTagRound = 0x4C28;
constexpr uint32_t kTagBlocks = 0x4C29;

constexpr uint64_t kMib = uint64_t{1} << 20;
constexpr uint64_t kLeastTimedBytes = kMib / 4;
constexpr uint64_t kTrialBytes = kMib;  // that a rank sends to find out how fast that is
constexpr int kMostSpanDoublings = 30;  // up to a pebibyte
constexpr uint64_t kBudgetShare = 12;   // of a round in the memory budget: six buffers and room

template <typename Step>
Status alone(const Step& step) {
  return without_exceptions("planning an exchange of blocks", step);
}

// Whether a block shares no bytes with its neighbours in the list, which ascends.
bool lies_apart(std::span<const plan::StoredBlock> blocks, size_t block) {
  const auto end_of = [](const plan::StoredBlock& each) { return each.position + each.length; };
  return (block == 0 || end_of(blocks[block - 1]) <= blocks[block].position) &&
         (block + 1 == blocks.size() || end_of(blocks[block]) <= blocks[block + 1].position);
}

int64_t ns_per_mib(int64_t elapsed_ns, uint64_t bytes) {
  return static_cast<int64_t>(static_cast<double>(elapsed_ns) * static_cast<double>(kMib) /
                              static_cast<double>(bytes));
}

// Who failed in the group of its machine leaves it to the one that made it fail to say why.
Status said_of(const Status& mine) {
  return NodeGroup::is_stopped(mine) ? Status() : mine;
}

}  // namespace

uint64_t round_bytes(uint64_t budget_bytes) {
  return std::clamp(budget_bytes / kBudgetShare, plan::kLeastSpanBytes, plan::kMostSpanBytes);
}

std::vector<plan::StoredBlock> place_blocks(std::span<const WantedBlock> blocks,
                                            std::span<const format::FileInfo> files) {
  std::vector<uint64_t> begins;
  uint64_t begin = 0;
  for (const format::FileInfo& file : files) {
    begins.push_back(begin);
    begin += file.size_bytes;
  }
  begins.push_back(begin);  // of what is made of files, and lies in none
  std::vector<plan::StoredBlock> placed;
  placed.reserve(blocks.size());
  for (const WantedBlock& block : blocks)
    placed.push_back({begins[block.file] + block.offset, block.length});
  return placed;
}

std::vector<plan::StoredBlock> exchangeable(std::span<const plan::StoredBlock> blocks) {
  std::vector<plan::StoredBlock> apart;
  apart.reserve(blocks.size());
  for (size_t block = 0; block < blocks.size(); ++block) {
    if (lies_apart(blocks, block)) apart.push_back(blocks[block]);
  }
  return apart;
}

void spread_routes(std::span<const plan::StoredBlock> blocks, plan::ExchangePlan* plan) {
  std::vector<plan::Route> routes;
  routes.reserve(blocks.size());
  size_t next = 0;
  for (size_t block = 0; block < blocks.size(); ++block)
    routes.push_back(lies_apart(blocks, block) ? plan->routes[next++] : plan::Route());
  plan->routes = std::move(routes);
}

bool exchange_pays(const ExchangeCosts& costs) {
  const auto times = [](uint64_t bytes, int64_t cost) {
    return static_cast<double>(bytes) * static_cast<double>(cost);
  };
  const double alone = times(costs.read_alone_bytes, costs.read_ns_per_mib);
  const double together = times(costs.read_bytes, costs.read_ns_per_mib) +
                          times(costs.received_bytes, costs.send_ns_per_mib);
  return together < 0.9 * alone;
}

Status LoadExchange::plan(collective::Exchange& exchange, const Status& ready,
                          NodeMeeting& meeting) noexcept {
  if (rule_ == ExchangeRule::kOff || exchange.size() == 1) return {};
  if (rule_ == ExchangeRule::kAuto && !exchange.has_all_to_all()) return {};
  return plan_together(exchange, ready, meeting);
}

// Each decision is the same on all ranks: it is made of what all have agreed on.
Status LoadExchange::plan_together(collective::Exchange& exchange, const Status& ready,
                                   NodeMeeting& meeting) {
  const int32_t node = meeting.node();
  const bool wants = !wanted_.blocks.empty();
  SHW_ASSIGN_OR_RETURN(
      const collective::Range nodes,
      exchange.range(kTagNodes, ready, wants ? collective::Range::of(node) : collective::Range()));
  if (nodes.least >= nodes.most) return {};
  SHW_RETURN_IF_ERROR(find_routes(exchange, node));
  SHW_ASSIGN_OR_RETURN(bool is_on, choose_span(exchange));
  if (is_on) {
    SHW_ASSIGN_OR_RETURN(is_on, reserve(exchange));
  }
  if (is_on && rule_ == ExchangeRule::kAuto) {
    SHW_ASSIGN_OR_RETURN(is_on, decide(exchange));
  }
  if (is_on) return tell_rounds(exchange, meeting);
  if (blocks_) tried_ = blocks_->totals();
  blocks_.reset();
  return {};
}

// A rank is the home of what others want and asks others for what it wants, in two steps of all.
Status LoadExchange::find_routes(collective::Exchange& exchange, int32_t node) {
  const auto world = static_cast<size_t>(exchange.size());
  std::vector<std::vector<std::byte>> parts;
  std::vector<plan::StoredBlock> asked;
  Status mine = alone([&]() -> Status {
    placed_ = place_blocks(wanted_.blocks, setting_.opened.files());
    asked = exchangeable(placed_);
    const plan::WantList none{exchange.rank(), exchange.size(), node, {}, 0, {}};
    std::vector<plan::WantList> by_home(world, none);
    for (const plan::StoredBlock& block : asked)
      by_home[static_cast<size_t>(plan::home_of(block, exchange.size()))].blocks.push_back(block);
    for (const plan::WantList& each : by_home) {
      SHW_ASSIGN_OR_RETURN(parts.emplace_back(), plan::encode(each));
    }
    return {};
  });
  collective::Gathered gathered;
  SHW_RETURN_IF_ERROR(exchange.trade(kTagWants, mine, parts, &gathered));
  mine = alone([&]() -> Status {
    std::vector<plan::WantList> wants;
    for (size_t rank = 0; rank < world; ++rank) {
      SHW_ASSIGN_OR_RETURN(wants.emplace_back(), plan::decode<plan::WantList>(gathered.part(rank)));
    }
    const std::vector<plan::ExchangePlan> answers = plan::route_blocks(wants);
    for (size_t rank = 0; rank < world; ++rank) {
      SHW_ASSIGN_OR_RETURN(parts[rank], plan::encode(answers[rank]));
    }
    return {};
  });
  SHW_RETURN_IF_ERROR(exchange.trade(kTagRoutes, mine, parts, &gathered));
  // What fails here is told in the next step.
  mine = alone([&]() -> Status {
    std::vector<plan::ExchangePlan> answers;
    for (size_t home = 0; home < world; ++home) {
      SHW_ASSIGN_OR_RETURN(answers.emplace_back(),
                           plan::decode<plan::ExchangePlan>(gathered.part(home)));
    }
    SHW_ASSIGN_OR_RETURN(plan_, plan::join_answers(asked, answers, exchange.rank()));
    spread_routes(placed_, &plan_);
    return {};
  });
  return exchange.agree(kTagRoutes, mine);
}

// The longest span whose rounds fit this rank, or the least one.
uint64_t LoadExchange::longest_span() const {
  const uint64_t most = round_bytes(setting_.runtime.staging().budget_bytes());
  const auto fits = [&](uint64_t span) {
    for (const plan::ExchangeRound& round : plan::make_rounds(placed_, plan_, span).rounds) {
      if (plan::largest_part(round, placed_) > most) return false;
    }
    return true;
  };
  int low = 0;  // fits, or is the least
  for (int high = kMostSpanDoublings + 1; high - low > 1;) {
    const int middle = (low + high) / 2;
    (fits(plan::kLeastSpanBytes << middle) ? low : high) = middle;
  }
  return plan::kLeastSpanBytes << low;
}

// That of the rank with the shortest is that of all. False when nothing is exchanged.
Result<bool> LoadExchange::choose_span(collective::Exchange& exchange) {
  int64_t span = 0;
  Status mine = alone([&] {
    span = static_cast<int64_t>(longest_span());
    return Status();
  });
  SHW_ASSIGN_OR_RETURN(const collective::Range spans,
                       exchange.range(kTagSpan, mine, collective::Range::of(span)));
  if (spans.least < static_cast<int64_t>(plan::kLeastSpanBytes))
    return data_loss("the transport brought a span that no rank has");
  mine = alone([&] {
    blocks_.emplace(setting_, wanted_,
                    plan::make_rounds(placed_, plan_, static_cast<uint64_t>(spans.least)),
                    exchange.size());
    return Status();
  });
  const uint64_t largest = mine.ok() ? blocks_->most().largest() : 0;
  SHW_ASSIGN_OR_RETURN(
      const collective::Range sizes,
      exchange.range(kTagSpan, mine, collective::Range::of(static_cast<int64_t>(largest))));
  return sizes.most > 0;
}

// False when a rank has no room.
Result<bool> LoadExchange::reserve(collective::Exchange& exchange) {
  const Status able = alone([&] { return blocks_->reserve(); });
  SHW_ASSIGN_OR_RETURN(
      const collective::Range all,
      exchange.range(kTagMemory, Status(), collective::Range::of(able.ok() ? 1 : 0)));
  blocks_->end_reserving();
  return all.least == 1;
}

Result<int64_t> LoadExchange::time_reads(collective::Exchange& exchange) {
  uint64_t bytes = 0;
  const int64_t begin_ns = clock_.monotonic_ns();
  const Status mine = alone([&] { return blocks_->read_first(&bytes); });
  const int64_t cost = ns_per_mib(clock_.monotonic_ns() - begin_ns, std::max<uint64_t>(bytes, 1));
  const bool knows = bytes >= kLeastTimedBytes;
  SHW_ASSIGN_OR_RETURN(
      const collective::Range costs,
      exchange.range(kTagCosts, mine, knows ? collective::Range::of(cost) : collective::Range()));
  return std::max<int64_t>(costs.most, 0);
}

// As many bytes from each rank to each other one.
Result<int64_t> LoadExchange::time_sends(collective::Exchange& exchange) {
  const auto world = static_cast<size_t>(exchange.size());
  std::vector<uint64_t> sizes;
  std::vector<std::byte> memory;
  const uint64_t each = std::max<uint64_t>(kTrialBytes / (world - 1), 1);
  const uint64_t bytes = each * (world - 1);
  const Status mine = alone([&] {
    sizes.assign(world, each);
    sizes[static_cast<size_t>(exchange.rank())] = 0;
    memory.resize(2 * bytes);
    return Status();
  });
  SHW_RETURN_IF_ERROR(exchange.agree(kTagTrial, mine));
  const int64_t begin_ns = clock_.monotonic_ns();
  const std::span<std::byte> all(memory);
  SHW_RETURN_IF_ERROR(
      exchange.swap(kTagTrial, Status(), all.first(bytes), sizes, all.subspan(bytes), sizes));
  const int64_t cost = ns_per_mib(clock_.monotonic_ns() - begin_ns, bytes);
  SHW_ASSIGN_OR_RETURN(const collective::Range costs,
                       exchange.range(kTagCosts, Status(), collective::Range::of(cost)));
  return costs.most;
}

Result<bool> LoadExchange::decide(collective::Exchange& exchange) {
  ExchangeCosts own;
  for (const plan::ExchangeRound& round : blocks_->rounds().rounds) {
    for (const uint32_t block : round.reads) own.read_bytes += wanted_.blocks[block].length;
    for (const plan::Transfer& each : round.arrivals)
      own.received_bytes += wanted_.blocks[each.block].length;
  }
  ExchangeCosts most;
  const auto agree_on = [&](uint64_t value, uint64_t* agreed) -> Status {
    SHW_ASSIGN_OR_RETURN(
        const collective::Range all,
        exchange.range(kTagCosts, Status(), collective::Range::of(static_cast<int64_t>(value))));
    *agreed = static_cast<uint64_t>(all.most);
    return {};
  };
  SHW_RETURN_IF_ERROR(agree_on(own.read_bytes + own.received_bytes, &most.read_alone_bytes));
  if (most.read_alone_bytes < kLeastExchangedBytes) return false;
  SHW_RETURN_IF_ERROR(agree_on(own.read_bytes, &most.read_bytes));
  SHW_RETURN_IF_ERROR(agree_on(own.received_bytes, &most.received_bytes));
  SHW_ASSIGN_OR_RETURN(most.read_ns_per_mib, time_reads(exchange));
  SHW_ASSIGN_OR_RETURN(most.send_ns_per_mib, time_sends(exchange));
  return exchange_pays(most);
}

// Before the ranks of a machine look at each other's lists.
Status LoadExchange::tell_rounds(collective::Exchange& exchange, NodeMeeting& meeting) {
  const std::vector<int64_t>& round_of = blocks_->rounds().round_of;
  for (size_t block = 0; block < round_of.size(); ++block) {
    if (round_of[block] != plan::ExchangeRounds::kNoRound)
      meeting.set_round(block, round_of[block], plan_.routes[block].taker);
  }
  return exchange.agree(kTagPlanned, Status());
}

Status LoadExchange::run(collective::Exchange& exchange, Status mine) noexcept {
  for (;;) {
    if (NodeGroup::is_loss_of_rank(mine)) {  // with whom nobody can agree
      exchange.abort(mine);
      return mine;
    }
    const int64_t next = blocks_->next_round();
    const bool has_next = next != BlockExchange::kNoRound;
    SHW_ASSIGN_OR_RETURN(
        const collective::Range rounds,
        exchange.range(kTagRound, said_of(mine),
                       has_next ? collective::Range::of(next) : collective::Range()));
    SHW_RETURN_IF_ERROR(mine);
    if (rounds.least > rounds.most) return {};
    const int64_t round = rounds.least;
    mine = alone([&] { return blocks_->begin(round); });
    Status moved = exchange.swap(kTagBlocks, mine, blocks_->outgoing(), blocks_->outgoing_sizes(),
                                 blocks_->incoming(), blocks_->incoming_sizes());
    if (!moved.ok()) {
      blocks_->stop();  // for ranks of this machine the bytes may have come
      return moved;
    }
    mine = alone([&] { return blocks_->finish(round); });
    if (!mine.ok()) blocks_->stop();
  }
}

}  // namespace shardwright::exec::internal
