// SPDX-License-Identifier: Apache-2.0
#include "core/exec/node_meeting_internal.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "core/base/copy_bytes.h"
#include "core/base/limits.h"
#include "core/base/without_exceptions.h"
#include "core/integrity/digest.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint32_t kTagOffered = 0x4C10;
constexpr int64_t kMeetingWaitNs = 20'000'000;
constexpr uint32_t kLayoutVersion = 3;  // of what processes share: others are no neighbours
constexpr uint64_t kListBegin = 64;

// What a rank brings to the first step; a list of size 0: it reads alone. By its mark a list is
// known: numbers of processes and descriptors may mean another one elsewhere.
struct Offer {
  Digest128 place{};
  Digest128 mark{};
  node::AreaHandle list;
  uint64_t count = 0;
};
// What a rank says in front of its list; each only grows.
enum MeetingState : uint32_t { kNothing = 0, kMadeArea = 1, kJoined = 2, kUnable = 3 };
enum Decision : uint32_t { kOpen = 0, kGo = 1, kNoGroup = 2 };

template <typename Step>
Status by_itself(const Step& step) {
  return without_exceptions("sharing reads", step);
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// Ranks make the same of the same lists and rules.
Digest128 digest_of(const std::vector<SharedTask>& tasks, const ShareRules& rules) {
  struct Parts {
    Digest128 tasks;
    ShareRules rules;
  };
  const Parts parts{integrity::xxh3_128(bytes_of(tasks)), rules};
  return integrity::xxh3_128(std::as_bytes(std::span(&parts, 1)));
}

// This machine, and what its ranks say that it is called.
Result<Digest128> place_called(std::string_view machine) {
  SHW_ASSIGN_OR_RETURN(const Digest128 place, node::neighbourhood(kLayoutVersion));
  if (machine.empty()) return place;
  const std::array<Digest128, 2> parts{place,
                                       integrity::xxh3_128(std::as_bytes(std::span(machine)))};
  return integrity::xxh3_128(std::as_bytes(std::span(parts)));
}

}  // namespace

// What the coordinator answers with, once per neighbour.
struct NodeMeeting::Neighbour {
  int32_t rank = 0;
  uint32_t reserved = 0;
  Offer offer;
};

struct NodeMeeting::ListHead {
  node::SharedWord state = kNothing;
  node::SharedWord decision = kOpen;  // of the first rank
  uint64_t area_bytes = 0;            // likewise; written before kMadeArea is said
  uint32_t area_descriptor = 0;
  Digest128 mark{};
  Digest128 schedule{};  // written before kMadeArea or kJoined is said
};

namespace {

// The lists of neighbours for each rank.
template <typename Neighbour>
std::vector<std::vector<std::byte>> answers(const collective::Gathered& offers) {
  std::map<Digest128, std::vector<Neighbour>> places;
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    Neighbour each;
    each.rank = static_cast<int32_t>(rank);
    const std::span<const std::byte> part = offers.part(rank);
    if (part.size() != sizeof(Offer)) continue;
    std::memcpy(&each.offer, part.data(), sizeof(Offer));
    if (each.offer.count > 0) places[each.offer.place].push_back(each);
  }
  std::vector<std::vector<std::byte>> parts(offers.size());
  for (const auto& [place, all] : places) {
    for (size_t begin = 0; begin < all.size(); begin += kMostSharers) {
      const std::vector<Neighbour> group(
          all.begin() + static_cast<ptrdiff_t>(begin),
          all.begin() + static_cast<ptrdiff_t>(std::min(begin + kMostSharers, all.size())));
      if (group.size() < 2) continue;
      const auto bytes = bytes_of(group);
      for (const Neighbour& each : group)
        parts[static_cast<size_t>(each.rank)].assign(bytes.begin(), bytes.end());
    }
  }
  return parts;
}

}  // namespace

NodeMeeting::NodeMeeting(collective::Exchange& exchange, const GroupRules& rules,
                         const CallControl& control)
    : exchange_(exchange), rules_(rules), control_(control) {}

NodeMeeting::~NodeMeeting() {
  if (!own_list_ || is_settled_) return;
  say(&ListHead::state, kUnable);
  say(&ListHead::decision, kNoGroup);
  if (group_ != nullptr && group_->area_) group_->stop();
}

NodeMeeting::ListHead& NodeMeeting::head_of(const node::SharedArea& list) {
  static_assert(sizeof(ListHead) <= kListBegin);
  return *reinterpret_cast<ListHead*>(list.bytes().data());
}

Status NodeMeeting::meet(const Status& ready, std::span<const WantedBlock> wanted) noexcept {
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> answer, offer_list(ready, wanted));
  const Status read = by_itself([&] { return read_answer(answer); });
  if (!read.ok()) neighbours_.clear();
  return {};
}

int32_t NodeMeeting::node() const {
  return neighbours_.empty() ? exchange_.rank() : neighbours_.front().rank;
}

void NodeMeeting::set_round(size_t block, int64_t round, int32_t taker) {
  if (!own_list_) return;
  const auto mate = std::ranges::find(neighbours_, taker, &Neighbour::rank);
  if (mate == neighbours_.end()) return;
  SharedBlock& own = own_blocks_[block];
  own.taker = static_cast<uint32_t>(mate - neighbours_.begin());
  own.round = round;
  std::memcpy(own_list_.bytes().data() + kListBegin + block * sizeof(own), &own, sizeof(own));
}

Result<std::unique_ptr<NodeGroup>> NodeMeeting::join() noexcept {
  if (neighbours_.empty()) return std::unique_ptr<NodeGroup>();
  return without_exceptions("sharing reads", [&] { return join_neighbours(); });
}

// What one of them cannot do ends their sharing, and nothing else.
Result<std::unique_ptr<NodeGroup>> NodeMeeting::join_neighbours() {
  Status able = by_itself([&] { return open_lists(); });
  SHW_ASSIGN_OR_RETURN(const bool goes, is_first() ? lead(able) : follow(able));
  is_settled_ = true;
  return goes ? std::move(group_) : std::unique_ptr<NodeGroup>();
}

bool NodeMeeting::is_first() const {
  return neighbours_.front().rank == exchange_.rank();
}

void NodeMeeting::say(node::SharedWord ListHead::* word, uint32_t value) {
  node::SharedWord& own = head_of(own_list_).*word;
  own.store(value, std::memory_order_release);
  node::wake_all(own);
}

// Until a neighbour has said at least that.
Result<uint32_t> NodeMeeting::hear(size_t neighbour, node::SharedWord ListHead::* word,
                                   uint32_t least) const {
  node::SharedWord& said = head_of(lists_[neighbour]).*word;
  CallControl control = control_;
  if (rules_.patience_ns >= 0)
    control.end_within(real_clock().monotonic_ns(), std::max<int64_t>(rules_.patience_ns, 1));
  for (;;) {
    const uint32_t value = said.load(std::memory_order_acquire);
    if (value >= least) return value;
    SHW_RETURN_IF_ERROR(control.check("finding ranks to share reads with"));
    SHW_RETURN_IF_ERROR(group_->check_member(neighbour));
    node::wait_for_change(said, value, kMeetingWaitNs);
  }
}

Result<bool> NodeMeeting::lead(Status able) {
  if (able.ok()) able = by_itself([&] { return make_area(); });
  bool goes = able.ok();
  say(&ListHead::state, goes ? kMadeArea : kUnable);
  for (size_t n = 1; goes && n < neighbours_.size(); ++n) {
    SHW_ASSIGN_OR_RETURN(const uint32_t state, hear(n, &ListHead::state, kJoined));
    goes = state == kJoined && head_of(lists_[n]).schedule == head_of(own_list_).schedule;
  }
  say(&ListHead::decision, goes ? kGo : kNoGroup);
  return goes;
}

Result<bool> NodeMeeting::follow(Status able) {
  if (able.ok()) {
    SHW_ASSIGN_OR_RETURN(const uint32_t first, hear(0, &ListHead::state, kMadeArea));
    if (first == kUnable) return false;
    able = by_itself([&] { return open_area(); });
  }
  say(&ListHead::state, able.ok() ? kJoined : kUnable);
  if (!able.ok()) return false;
  SHW_ASSIGN_OR_RETURN(const uint32_t decision, hear(0, &ListHead::decision, kGo));
  return decision == kGo;
}

Status NodeMeeting::make_list(std::span<const WantedBlock> wanted) {
  SHW_ASSIGN_OR_RETURN(place_, place_called(rules_.machine));
  SHW_ASSIGN_OR_RETURN(mark_, node::random_mark());
  SHW_ASSIGN_OR_RETURN(own_list_,
                       node::SharedArea::create(kListBegin + wanted.size() * sizeof(SharedBlock)));
  new (own_list_.bytes().data()) ListHead();
  head_of(own_list_).mark = mark_;
  own_blocks_.reserve(wanted.size());
  for (const WantedBlock& block : wanted) own_blocks_.push_back({.block = block});
  copy_bytes(bytes_of(own_blocks_), own_list_.bytes().subspan(kListBegin));
  return {};
}

Result<std::vector<std::byte>> NodeMeeting::offer_list(Status ready,
                                                       std::span<const WantedBlock> wanted) {
  Offer offer;
  if (ready.ok() && !wanted.empty() && by_itself([&] { return make_list(wanted); }).ok())
    offer = {place_, mark_, own_list_.handle(), own_blocks_.size()};
  collective::Gathered offers;
  ready = exchange_.gather(kTagOffered, ready, std::as_bytes(std::span(&offer, 1)), &offers);
  SHW_RETURN_IF_ERROR(ready);
  std::vector<std::vector<std::byte>> parts;
  if (exchange_.is_coordinator())
    ready = without_exceptions("finding neighbours", [&] {
      parts = answers<Neighbour>(offers);
      return Status();
    });
  return exchange_.scatter(kTagOffered, ready, parts);
}

Status NodeMeeting::read_answer(std::span<const std::byte> answer) {
  neighbours_.resize(answer.size() / sizeof(Neighbour));
  if (neighbours_.empty()) return {};
  std::memcpy(neighbours_.data(), answer.data(), neighbours_.size() * sizeof(Neighbour));
  group_.reset(new NodeGroup());
  group_->patience_ns_ = rules_.patience_ns < 0 ? INT64_MAX : rules_.patience_ns;
  for (const Neighbour& each : neighbours_) {
    if (each.rank == exchange_.rank())
      group_->own_ = static_cast<uint32_t>(group_->members_.size());
    group_->members_.push_back(
        {each.rank, each.offer.list.process, node::ProcessWatch(each.offer.list.process)});
  }
  return {};
}

// What others may write to is read once, the own list not at all.
Status NodeMeeting::read_list(const Neighbour& neighbour) {
  SHW_ASSIGN_OR_RETURN(node::SharedArea list, node::SharedArea::open(neighbour.offer.list));
  const uint64_t bytes = list.bytes().size();
  if (bytes < kListBegin || neighbour.offer.count > (bytes - kListBegin) / sizeof(SharedBlock) ||
      head_of(list).mark != neighbour.offer.mark)
    return data_loss("what another rank offers is not its list");
  const bool own = neighbour.rank == exchange_.rank();
  std::vector<SharedBlock>& blocks =
      blocks_.emplace_back(own ? own_blocks_ : std::vector<SharedBlock>(neighbour.offer.count));
  if (!own)
    std::memcpy(blocks.data(), list.bytes().data() + kListBegin,
                blocks.size() * sizeof(SharedBlock));
  for (const SharedBlock& block : blocks) {
    if (block.taker >= neighbours_.size())
      return data_loss("the list of another rank names a rank that is not here");
  }
  lists_.push_back(std::move(list));
  return {};
}

Status NodeMeeting::open_lists() {
  for (const Neighbour& each : neighbours_) SHW_RETURN_IF_ERROR(read_list(each));
  for (const NodeGroup::Member& each : group_->members_) {
    if (!each.watch.is_watched())
      return unimplemented("this system does not tell when the process of another rank ends");
  }
  group_->tasks_ = share_blocks(blocks_, rules_.share);
  head_of(own_list_).schedule = digest_of(group_->tasks_, rules_.share);
  return group_->tasks_.empty() ? failed_precondition("no block is wanted twice") : Status();
}

Status NodeMeeting::make_area() {
  const uint64_t slot_bytes = NodeGroup::slot_bytes_of(rules_.share);
  const uint64_t within = std::max<uint64_t>(rules_.most_bytes / slot_bytes, 1);
  const uint64_t slots = std::clamp<uint64_t>(
      kSlotsPerRank * neighbours_.size(), 1,
      std::min({uint64_t{group_->tasks_.size()}, NodeGroup::kMostSlots, within}));
  SHW_ASSIGN_OR_RETURN(node::SharedArea area,
                       node::SharedArea::create(NodeGroup::area_bytes(slots, slot_bytes)));
  NodeGroup::begin_area(area.bytes(), slots);
  ListHead& head = head_of(own_list_);
  head.area_descriptor = static_cast<uint32_t>(area.handle().descriptor);
  head.area_bytes = area.bytes().size();
  return use_area(std::move(area));
}

Status NodeMeeting::open_area() {
  const ListHead& first = head_of(lists_.front());
  SHW_ASSIGN_OR_RETURN(
      node::SharedArea area,
      node::SharedArea::open({neighbours_.front().offer.list.process,
                              static_cast<int32_t>(first.area_descriptor), first.area_bytes}));
  return use_area(std::move(area));
}

Status NodeMeeting::use_area(node::SharedArea area) {
  const uint64_t slot_bytes = NodeGroup::slot_bytes_of(rules_.share);
  const uint64_t slots = NodeGroup::slots_of(area.bytes().size(), slot_bytes);
  if (slots == 0) return data_loss("the memory for all is of another size");
  group_->area_ = std::move(area);
  group_->slot_bytes_ = slot_bytes;
  group_->slots_ = static_cast<uint32_t>(slots);
  return {};
}

}  // namespace shardwright::exec::internal
