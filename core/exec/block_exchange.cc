// SPDX-License-Identifier: Apache-2.0
//
// What is read for round r is sent in round r + 1, while the next reads are on their way: three
// buffers take turns. What comes in round r is sent on in round r + 1, while more comes: two.
#include "core/exec/block_exchange_internal.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/base/limits.h"
#include "core/exec/parallel_internal.h"

namespace shardwright::exec::internal {
namespace {

using plan::ExchangeRound;
using plan::Transfer;

bool lies_in(const WantedBlock& block, const SharedTask& task) {
  return block.file == task.file && block.offset >= task.offset &&
         block.offset + block.length <= task.offset + task.length;
}

Status reserve_bytes(BufferPool& staging, uint64_t bytes, StagingBuffer* buffer) {
  if (bytes == 0) return {};
  SHW_ASSIGN_OR_RETURN(*buffer, staging.try_acquire(bytes));
  if (*buffer) return {};
  return resource_exhausted("memory", "the memory budget has no room to exchange blocks");
}

uint64_t bytes_of(std::span<const Transfer> transfers, std::span<const WantedBlock> blocks) {
  uint64_t bytes = 0;
  for (const Transfer& each : transfers) bytes += blocks[each.block].length;
  return bytes;
}

// Of blocks that are read where they stay.
class NoSink final : public BlockSink {
 public:
  Status consume(std::span<const BlockNeed>, std::span<const std::byte>, bool) override {
    return {};
  }
};

ReadSetting with_sink(const ReadSetting& setting, BlockSink& sink) {
  return {setting.runtime, setting.location, setting.opened, setting.rules, setting.call, sink,
          setting.trace};
}

}  // namespace

BlockExchange::BlockExchange(const ReadSetting& setting, const Wanted& wanted,
                             plan::ExchangeRounds rounds, int32_t world_size)
    : setting_(setting),
      wanted_(wanted),
      rounds_(std::move(rounds)),
      world_size_(static_cast<size_t>(world_size)),
      io_(setting),
      most_(most_bytes()),
      places_(wanted.blocks.size(), nullptr),
      outgoing_sizes_(world_size_, 0),
      incoming_sizes_(world_size_, 0),
      ahead_(&setting.runtime.pool()) {
  io_.expect(wanted.needs, {});
}

BlockExchange::~BlockExchange() = default;

// What is kept of other sizes for later calls goes where it is in the way.
Status BlockExchange::reserve() {
  if (reserve_all().ok()) return {};
  for (StagingBuffer& buffer : read_) buffer = StagingBuffer();
  for (StagingBuffer& buffer : arrived_) buffer = StagingBuffer();
  sent_ = StagingBuffer();
  setting_.runtime.staging().trim();
  return reserve_all();
}

Status BlockExchange::reserve_all() {
  BufferPool& staging = setting_.runtime.staging();
  for (StagingBuffer& buffer : read_)
    SHW_RETURN_IF_ERROR(reserve_bytes(staging, most_.read, &buffer));
  for (StagingBuffer& buffer : arrived_)
    SHW_RETURN_IF_ERROR(reserve_bytes(staging, most_.received, &buffer));
  SHW_RETURN_IF_ERROR(reserve_bytes(staging, most_.sent, &sent_));
  return reserve_bytes(staging, kReadTaskBytes, &spare_);
}

Status BlockExchange::read_first(uint64_t* bytes) {
  *bytes = 0;
  has_begun_ = true;
  read_ahead();
  SHW_RETURN_IF_ERROR(ahead_.wait());
  if (reads_ == 0) return {};
  for (const uint32_t block : rounds_.rounds[next_read_ - 1].reads)
    *bytes += wanted_.blocks[block].length;
  return {};
}

void BlockExchange::join(NodeGroup* group, std::vector<BlockNeed>* rest) {
  group_ = group;
  std::vector<bool> comes(wanted_.blocks.size(), false);
  for (const ExchangeRound& round : rounds_.rounds) {
    for (const uint32_t block : round.reads) comes[block] = true;
    for (const Transfer& each : round.arrivals) comes[each.block] = true;
  }
  if (group != nullptr) add_group_tasks(&comes);
  rest->clear();
  uint64_t items = 0;
  for (size_t block = 0; block < comes.size(); ++block) {
    const std::span<const BlockNeed> needs = wanted_.needs_of(block);
    if (!comes[block]) rest->insert(rest->end(), needs.begin(), needs.end());
    items += comes[block] ? needs.size() : 0;
  }
  if (setting_.call.progress != nullptr) setting_.call.progress->items_total += items;
}

void BlockExchange::add_group_tasks(std::vector<bool>* comes) {
  const auto& blocks = wanted_.blocks;
  for (uint32_t number = 0; number < group_->tasks().size(); ++number) {
    const SharedTask& task = group_->tasks()[number];
    if (task.round == SharedBlock::kStored || !task.is_of(group_->own_number())) continue;
    const auto first = std::ranges::lower_bound(
        blocks, std::tuple(task.file, task.offset, uint32_t{0}), {}, &WantedBlock::place);
    const auto last = std::find_if(
        first, blocks.end(), [&task](const WantedBlock& block) { return !lies_in(block, task); });
    group_tasks_.push_back({number, task.round, task.reader == group_->own_number(),
                            static_cast<size_t>(first - blocks.begin()),
                            static_cast<size_t>(last - blocks.begin())});
    const GroupTask& added = group_tasks_.back();
    for (size_t block = added.first; block < added.last; ++block) {
      if (belongs_to(block, added)) (*comes)[block] = true;
    }
  }
}

int64_t BlockExchange::next_round() const {
  const int64_t own =
      next_round_ < rounds_.rounds.size() ? rounds_.rounds[next_round_].number : kNoRound;
  const int64_t of_group =
      next_task_ < group_tasks_.size() ? group_tasks_[next_task_].round : kNoRound;
  return std::min(own, of_group);
}

bool BlockExchange::takes_part(int64_t round) const {
  return next_round_ < rounds_.rounds.size() && rounds_.rounds[next_round_].number == round;
}

// Of the next round that needs reads, unless that is on its way or there is none.
void BlockExchange::read_ahead() {
  size_t next = next_read_;
  while (next < rounds_.rounds.size() && rounds_.rounds[next].reads.empty()) ++next;
  next_read_ = next;
  if (next == rounds_.rounds.size()) return;
  ++next_read_;
  ++reads_;
  const std::span<std::byte> memory = read_[reads_ % read_.size()].bytes();
  ahead_.run([this, next, memory] { return read(next, memory); });
}

BlockExchange::RoundReads BlockExchange::reads_of(const ExchangeRound& round) const {
  RoundReads reads;
  reads.needs.reserve(round.reads.size());
  for (const uint32_t block : round.reads) {
    reads.needs.push_back(wanted_.needs_of(block).front());
    reads.needs.back().user = block;
  }
  reads.tasks = make_read_tasks(&reads.needs, io_.task_rules());
  for (const ReadTask& task : reads.tasks) {
    reads.places.push_back(reads.bytes);
    reads.bytes +=
        (task.length + kExtentAlignmentBytes - 1) / kExtentAlignmentBytes * kExtentAlignmentBytes;
  }
  return reads;
}

RoundBytes BlockExchange::most_bytes() const {
  RoundBytes most;
  for (const ExchangeRound& round : rounds_.rounds) {
    if (!round.reads.empty()) most.read = std::max(most.read, reads_of(round).bytes);
    most.sent = std::max(most.sent, bytes_of(round.departures, wanted_.blocks));
    most.received = std::max(most.received, bytes_of(round.arrivals, wanted_.blocks));
  }
  return most;
}

// Straight into the memory that was reserved: a rank that waited for more might wait for one that
// waits for its blocks.
Status BlockExchange::read(size_t number, std::span<std::byte> memory) {
  const RoundReads reads = reads_of(rounds_.rounds[number]);
  if (setting_.call.progress != nullptr) {
    for (const ReadTask& task : reads.tasks) setting_.call.progress->bytes_total += task.length;
  }
  NoSink sink;
  BlockIo io(with_sink(setting_, sink));
  io.expect(reads.needs, reads.tasks);
  const auto read_task = [&](size_t i) {
    ReadTask task = reads.tasks[i];
    SHW_RETURN_IF_ERROR(io.prepare(task));
    const std::span<std::byte> place = memory.subspan(reads.places[i], task.length);
    const bool cached = io.is_cached(task);
    if (cached) task.direct = false;
    Status status = io.explained(task, io.read(task, place));
    if (status.ok()) status = io.hand_on(task, place, /*landed=*/true);
    if (status.ok() && cached) io.count_cached(task.length);
    io.task_done(task);
    if (status.ok() && setting_.call.progress != nullptr)
      setting_.call.progress->advance(task.length, 0);
    return status;
  };
  SHW_RETURN_IF_ERROR(
      run_each(setting_.runtime.pool(), reads.tasks.size(), setting_.call.control, read_task));
  for (size_t i = 0; i < reads.tasks.size(); ++i) {
    const ReadTask& task = reads.tasks[i];
    for (const BlockNeed& need : io.needs_of(task))
      places_[need.user] = memory.data() + reads.places[i] + (need.offset - task.offset);
  }
  totals_.add({io.bytes_read(), io.bytes_cached(), {}});
  return {};
}

Status BlockExchange::begin(int64_t round) {
  std::ranges::fill(outgoing_sizes_, 0);
  std::ranges::fill(incoming_sizes_, 0);
  outgoing_ = {};
  incoming_ = {};
  if (!takes_part(round)) return {};
  SHW_RETURN_IF_ERROR(setting_.call.control.check("exchanging blocks"));
  const ExchangeRound& own = rounds_.rounds[next_round_];
  if (!has_begun_) read_ahead();
  has_begun_ = true;
  if (!own.reads.empty()) {
    SHW_RETURN_IF_ERROR(ahead_.wait());
    read_ahead();
  }
  uint64_t sent = 0;
  for (const Transfer& each : own.departures) {
    const uint64_t length = wanted_.blocks[each.block].length;
    if (places_[each.block] == nullptr)
      return internal_error("a block that is to be sent is not here");
    std::memcpy(sent_.bytes().data() + sent, places_[each.block], length);
    outgoing_sizes_[static_cast<size_t>(each.rank)] += length;
    sent += length;
  }
  outgoing_ = sent_.bytes().first(sent);
  uint64_t received = 0;
  const StagingBuffer& room = arrived_[static_cast<size_t>(round % 2)];
  for (const Transfer& each : own.arrivals) {
    places_[each.block] = room.bytes().data() + received;
    const uint64_t length = wanted_.blocks[each.block].length;
    incoming_sizes_[static_cast<size_t>(each.rank)] += length;
    received += length;
  }
  incoming_ = room.bytes().first(received);
  return {};
}

Status BlockExchange::finish(int64_t round) {
  if (takes_part(round)) SHW_RETURN_IF_ERROR(hand_on(rounds_.rounds[next_round_]));
  SHW_RETURN_IF_ERROR(pass_on(round));
  if (takes_part(round)) ++next_round_;
  return {};
}

void BlockExchange::stop() {
  if (group_ != nullptr) group_->stop();
}

ReadTask BlockExchange::task_of(size_t block) const {
  ReadTask task;
  task.file = wanted_.blocks[block].file;
  task.offset = wanted_.blocks[block].offset;
  task.length = wanted_.blocks[block].length;
  task.first = wanted_.begins[block];
  task.last = wanted_.begins[block + 1];
  return task;
}

// What this rank has read was checked when it was read.
Status BlockExchange::hand_on(const ExchangeRound& round) {
  const size_t reads = round.reads.size();
  const size_t count = reads + round.arrivals.size();
  return run_each(setting_.runtime.pool(), count, setting_.call.control, [&](size_t i) {
    const uint32_t block = i < reads ? round.reads[i] : round.arrivals[i - reads].block;
    const std::span<const std::byte> bytes(places_[block], wanted_.blocks[block].length);
    const ReadTask task = task_of(block);
    SHW_RETURN_IF_ERROR(io_.hand_on(task, bytes, /*landed=*/false, /*checked=*/i < reads));
    if (setting_.call.progress != nullptr)
      setting_.call.progress->advance(0, task.last - task.first);
    return Status();
  });
}

// Tasks are given and taken in their order, so that ranks that wait for slots never wait in a ring.
Status BlockExchange::pass_on(int64_t round) {
  for (; next_task_ < group_tasks_.size() && group_tasks_[next_task_].round == round;
       ++next_task_) {
    const GroupTask& task = group_tasks_[next_task_];
    SHW_RETURN_IF_ERROR(task.is_taken_here ? give(task) : take(task));
  }
  return {};
}

template <typename Ready>
Status BlockExchange::wait(const GroupTask& task, const Ready& ready) {
  NodeGroup::Stillness still;
  for (;;) {
    const uint32_t seen = group_->seen();
    if (ready()) return {};
    SHW_RETURN_IF_ERROR(setting_.call.control.check("exchanging blocks"));
    SHW_RETURN_IF_ERROR(group_->wait(seen, &still, task.number));
  }
}

Status BlockExchange::give(const GroupTask& task) {
  SHW_RETURN_IF_ERROR(wait(task, [&] { return group_->is_free(task.number); }));
  const std::span<std::byte> slot = group_->slot(task.number);
  const uint64_t begin = group_->tasks()[task.number].offset;
  for (size_t block = task.first; block < task.last; ++block) {
    if (!belongs_to(block, task)) continue;
    if (places_[block] == nullptr)
      return internal_error("a block for the ranks of this machine is not here");
    const WantedBlock& wanted = wanted_.blocks[block];
    std::memcpy(slot.data() + (wanted.offset - begin), places_[block], wanted.length);
  }
  group_->publish(task.number);
  return {};
}

Status BlockExchange::take(const GroupTask& task) {
  SHW_RETURN_IF_ERROR(wait(task, [&] { return group_->is_ready(task.number); }));
  const uint64_t begin = group_->tasks()[task.number].offset;
  for (size_t block = task.first; block < task.last; ++block) {
    if (!belongs_to(block, task)) continue;
    const ReadTask own = task_of(block);
    const auto bytes = group_->slot(task.number).subspan(own.offset - begin, own.length);
    SHW_RETURN_IF_ERROR(io_.hand_on(own, bytes, /*landed=*/false, /*checked=*/true));
    if (setting_.call.progress != nullptr) setting_.call.progress->advance(0, own.last - own.first);
  }
  group_->release(task.number);
  return {};
}

}  // namespace shardwright::exec::internal
