// SPDX-License-Identifier: Apache-2.0
//
// Forming a group: each rank puts what it wants into memory of its own that others can open, and
// offers it to the coordinator, which tells each rank who its neighbours are. From there on they
// meet in that memory: they open each other's lists, the first of them makes the memory for all,
// the others open it and say whether they could and what they made of the lists, and the first one
// says whether it goes.
#include "core/exec/node_group_internal.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/without_exceptions.h"
#include "core/integrity/digest.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint32_t kTagOffered = 0x4C10;
constexpr uint64_t kLine = 64;  // of a processor's cache: what changes apart lies apart
constexpr int64_t kWaitNs = 20'000'000;
constexpr uint32_t kLayoutVersion = 1;  // of what processes share: others are no neighbours

// What a rank brings to the first step; a list of size 0: it reads alone. By its mark a list is
// known: numbers of processes and descriptors may mean another one elsewhere.
struct Offer {
  Digest128 place{};
  Digest128 mark{};
  node::AreaHandle list;
  uint64_t count = 0;
};
// What the coordinator answers with, once per neighbour.
struct Neighbour {
  int32_t rank = 0;
  uint32_t reserved = 0;
  Offer offer;
};
// What a rank says in front of its list; each only grows.
enum State : uint32_t { kNothing = 0, kMadeArea = 1, kJoined = 2, kUnable = 3 };
enum Decision : uint32_t { kOpen = 0, kGo = 1, kNoGroup = 2 };
struct ListHead {
  node::SharedWord state = kNothing;
  node::SharedWord decision = kOpen;  // of the first rank
  uint64_t area_bytes = 0;            // likewise; written before kMadeArea is said
  uint32_t area_descriptor = 0;
  Digest128 mark{};
  Digest128 schedule{};  // written before kMadeArea or kJoined is said
};

constexpr uint64_t kListBegin = kLine;
static_assert(sizeof(ListHead) <= kListBegin);

ListHead& head_of(const node::SharedArea& list) {
  return *reinterpret_cast<ListHead*>(list.bytes().data());
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

Result<node::SharedArea> make_list(std::span<const WantedBlock> wanted, const Digest128& mark) {
  SHW_ASSIGN_OR_RETURN(node::SharedArea list,
                       node::SharedArea::create(kListBegin + wanted.size_bytes()));
  new (list.bytes().data()) ListHead();
  head_of(list).mark = mark;
  std::ranges::copy(std::as_bytes(wanted), list.bytes().subspan(kListBegin).begin());
  return list;
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

// The lists of neighbours for each rank.
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

struct NodeGroup::Head {
  node::SharedWord changes = 0;
  node::SharedWord stopped = 0;  // number of the sharer that has failed, plus one
};
struct NodeGroup::Slot {
  node::SharedWord ready = 0;  // number of the task in it, plus one
  node::SharedWord left = 0;   // sharers that have not taken it
};

class GroupMaker {
 public:
  GroupMaker(collective::Exchange& exchange, std::span<const WantedBlock> wanted,
             const GroupRules& rules, const CallControl& control)
      : exchange_(exchange), wanted_(wanted), rules_(rules), control_(control) {}

  // Whoever leaves before the end says so.
  ~GroupMaker() {
    if (!own_list_ || is_settled_) return;
    say(&ListHead::state, kUnable);
    say(&ListHead::decision, kNoGroup);
    if (group_ != nullptr && group_->area_) group_->stop();
  }

  // Two steps of all ranks, which ends what they do together. *joins: whether there is a group.
  Status meet_all(Status ready, bool* joins) {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> answer, meet(std::move(ready)));
    *joins = alone([&] { return read_answer(answer); }).ok() && !neighbours_.empty();
    return {};
  }

  // With the neighbours alone. What one of them cannot do ends their sharing, and nothing else.
  Result<std::unique_ptr<NodeGroup>> join() {
    Status able = alone([&] { return open_lists(); });
    SHW_ASSIGN_OR_RETURN(const bool goes, is_first() ? lead(able) : follow(able));
    is_settled_ = true;
    return goes ? std::move(group_) : std::unique_ptr<NodeGroup>();
  }

 private:
  template <typename Step>
  static Status alone(const Step& step) {
    return without_exceptions("sharing reads", step);
  }

  bool is_first() const { return neighbours_.front().rank == exchange_.rank(); }

  void say(node::SharedWord ListHead::* word, uint32_t value) {
    node::SharedWord& own = head_of(own_list_).*word;
    own.store(value, std::memory_order_release);
    node::wake_all(own);
  }

  // Until a neighbour has said at least that.
  Result<uint32_t> hear(size_t neighbour, node::SharedWord ListHead::* word, uint32_t least) const {
    node::SharedWord& said = head_of(lists_[neighbour]).*word;
    CallControl control = control_;
    if (rules_.patience_ns >= 0)
      control.end_within(real_clock().monotonic_ns(), std::max<int64_t>(rules_.patience_ns, 1));
    for (;;) {
      const uint32_t value = said.load(std::memory_order_acquire);
      if (value >= least) return value;
      SHW_RETURN_IF_ERROR(control.check("finding ranks to share reads with"));
      SHW_RETURN_IF_ERROR(group_->check_member(neighbour));
      node::wait_for_change(said, value, kWaitNs);
    }
  }

  Result<bool> lead(Status able) {
    if (able.ok()) able = alone([&] { return make_area(); });
    bool goes = able.ok();
    say(&ListHead::state, goes ? kMadeArea : kUnable);
    for (size_t n = 1; goes && n < neighbours_.size(); ++n) {
      SHW_ASSIGN_OR_RETURN(const uint32_t state, hear(n, &ListHead::state, kJoined));
      goes = state == kJoined && head_of(lists_[n]).schedule == head_of(own_list_).schedule;
    }
    say(&ListHead::decision, goes ? kGo : kNoGroup);
    return goes;
  }

  Result<bool> follow(Status able) {
    if (able.ok()) {
      SHW_ASSIGN_OR_RETURN(const uint32_t first, hear(0, &ListHead::state, kMadeArea));
      if (first == kUnable) return false;
      able = alone([&] { return open_area(); });
    }
    say(&ListHead::state, able.ok() ? kJoined : kUnable);
    if (!able.ok()) return false;
    SHW_ASSIGN_OR_RETURN(const uint32_t decision, hear(0, &ListHead::decision, kGo));
    return decision == kGo;
  }

  Result<std::vector<std::byte>> meet(Status ready) {
    Offer offer;
    if (ready.ok() && !wanted_.empty()) {
      static_cast<void>(alone([&]() -> Status {
        SHW_ASSIGN_OR_RETURN(const Digest128 place, node::neighbourhood(kLayoutVersion));
        SHW_ASSIGN_OR_RETURN(const Digest128 mark, node::random_mark());
        SHW_ASSIGN_OR_RETURN(own_list_, make_list(wanted_, mark));
        offer = {place, mark, own_list_.handle(), wanted_.size()};
        return {};
      }));
    }
    collective::Gathered offers;
    ready = exchange_.gather(kTagOffered, ready, std::as_bytes(std::span(&offer, 1)), &offers);
    SHW_RETURN_IF_ERROR(ready);
    std::vector<std::vector<std::byte>> parts;
    if (exchange_.is_coordinator())
      ready = without_exceptions("finding neighbours", [&] {
        parts = answers(offers);
        return Status();
      });
    return exchange_.scatter(kTagOffered, ready, parts);
  }

  Status read_answer(std::span<const std::byte> answer) {
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

  Status open_lists() {
    for (const Neighbour& each : neighbours_) {
      SHW_ASSIGN_OR_RETURN(node::SharedArea list, node::SharedArea::open(each.offer.list));
      const uint64_t bytes = list.bytes().size();
      if (bytes < kListBegin || each.offer.count > (bytes - kListBegin) / sizeof(WantedBlock) ||
          head_of(list).mark != each.offer.mark)
        return data_loss("what another rank offers is not its list");
      const bool own = each.rank == exchange_.rank();
      std::vector<WantedBlock>& blocks = blocks_.emplace_back(own ? 0 : each.offer.count);
      if (own) {
        blocks.assign(wanted_.begin(), wanted_.end());  // what others may write to is not read back
      } else {
        std::memcpy(blocks.data(), list.bytes().data() + kListBegin,
                    blocks.size() * sizeof(WantedBlock));
      }
      lists_.push_back(std::move(list));
    }
    for (const NodeGroup::Member& each : group_->members_) {
      if (!each.watch.is_watched())
        return unimplemented("this system does not tell when the process of another rank ends");
    }
    group_->tasks_ = share_blocks(blocks_, rules_.share);
    head_of(own_list_).schedule = digest_of(group_->tasks_, rules_.share);
    return group_->tasks_.empty() ? failed_precondition("no block is wanted twice") : Status();
  }

  Status make_area() {
    const uint64_t slots =
        std::clamp<uint64_t>(kSlotsPerRank * neighbours_.size(), 1,
                             std::min({group_->tasks_.size(), kMostSlots,
                                       std::max<uint64_t>(rules_.most_bytes / slot_bytes(), 1)}));
    SHW_ASSIGN_OR_RETURN(own_area_, node::SharedArea::create(area_bytes(slots)));
    new (own_area_.bytes().data()) NodeGroup::Head();
    for (uint64_t s = 0; s < slots; ++s)
      new (own_area_.bytes().data() + (s + 1) * kLine) NodeGroup::Slot();
    ListHead& head = head_of(own_list_);
    head.area_descriptor = static_cast<uint32_t>(own_area_.handle().descriptor);
    head.area_bytes = own_area_.bytes().size();
    return open_area();
  }

  static constexpr uint64_t kMostSlots = kExtentAlignmentBytes / kLine - 1;
  // Heads in a page in front of the slots.
  uint64_t area_bytes(uint64_t slots) const { return kExtentAlignmentBytes + slots * slot_bytes(); }
  uint64_t slot_bytes() const {
    constexpr uint64_t kPage = kExtentAlignmentBytes;
    return (rules_.share.most_bytes + kPage - 1) / kPage * kPage;
  }

  Status open_area() {
    const ListHead& first = head_of(lists_.front());
    const uint64_t bytes = first.area_bytes;
    const uint64_t slots =
        bytes < kExtentAlignmentBytes ? 0 : (bytes - kExtentAlignmentBytes) / slot_bytes();
    if (bytes != area_bytes(slots) || slots == 0 || slots > kMostSlots)
      return data_loss("the memory for all is of another size");
    SHW_ASSIGN_OR_RETURN(group_->area_, node::SharedArea::open(
                                            {neighbours_.front().offer.list.process,
                                             static_cast<int32_t>(first.area_descriptor), bytes}));
    group_->slot_bytes_ = slot_bytes();
    group_->slots_ = static_cast<uint32_t>(slots);
    return {};
  }

  collective::Exchange& exchange_;
  const std::span<const WantedBlock> wanted_;
  const GroupRules rules_;
  const CallControl& control_;
  node::SharedArea own_list_;
  node::SharedArea own_area_;
  std::vector<Neighbour> neighbours_;
  std::vector<node::SharedArea> lists_;
  std::vector<std::vector<WantedBlock>> blocks_;
  std::unique_ptr<NodeGroup> group_;
  bool is_settled_ = false;
};

Status NodeGroup::form(collective::Exchange& exchange, const Status& ready,
                       std::span<const WantedBlock> wanted, const GroupRules& rules,
                       const CallControl& control,
                       Result<std::unique_ptr<NodeGroup>>* group) noexcept {
  GroupMaker maker(exchange, wanted, rules, control);
  bool joins = false;
  SHW_RETURN_IF_ERROR(maker.meet_all(ready, &joins));
  if (joins) *group = without_exceptions("sharing reads", [&] { return maker.join(); });
  return {};
}

NodeGroup::Head& NodeGroup::head() const {
  return *reinterpret_cast<Head*>(area_.bytes().data());
}

NodeGroup::Slot& NodeGroup::slot_head(uint32_t number) const {
  return *reinterpret_cast<Slot*>(area_.bytes().data() + (number % slots_ + 1) * kLine);
}

std::span<std::byte> NodeGroup::slot(uint32_t number) const {
  return area_.bytes().subspan(kExtentAlignmentBytes + number % slots_ * slot_bytes_, slot_bytes_);
}

bool NodeGroup::is_free(uint32_t number) const {
  if (number < slots_) return true;
  const Slot& slot = slot_head(number);
  return slot.ready.load(std::memory_order_acquire) == number - slots_ + 1 &&
         slot.left.load(std::memory_order_acquire) == 0;
}

bool NodeGroup::is_ready(uint32_t number) const {
  return slot_head(number).ready.load(std::memory_order_acquire) == number + 1;
}

void NodeGroup::publish(uint32_t number) {
  Slot& slot = slot_head(number);
  const auto others = static_cast<uint32_t>(std::popcount(tasks_[number].sharers)) - 1;
  slot.left.store(others, std::memory_order_relaxed);
  slot.ready.store(number + 1, std::memory_order_release);
  tell();
}

void NodeGroup::release(uint32_t number) {
  if (slot_head(number).left.fetch_sub(1, std::memory_order_acq_rel) == 1) tell();
}

void NodeGroup::stop() {
  uint32_t nobody = 0;
  head().stopped.compare_exchange_strong(nobody, own_ + 1);
  tell();
}

void NodeGroup::tell() const {
  head().changes.fetch_add(1, std::memory_order_release);
  node::wake_all(head().changes);
}

uint32_t NodeGroup::seen() const {
  return head().changes.load(std::memory_order_acquire);
}

// Processes are looked at where nothing came for a while, and where a rank has failed: it may have
// found first that another one's has ended.
Status NodeGroup::wait(uint32_t seen) const {
  const uint32_t stopped = head().stopped.load(std::memory_order_acquire);
  if (stopped != 0 && stopped != own_ + 1 && stopped <= members_.size()) {
    SHW_RETURN_IF_ERROR(check_members());
    const std::string rank = fmt::to_string(members_[stopped - 1].rank);
    return aborted(fmt::format("rank {} failed while ranks of its machine shared reads", rank))
        .with_detail("stopped_by", rank);
  }
  node::wait_for_change(head().changes, seen, kWaitNs);
  return this->seen() == seen ? check_members() : Status();
}

Status NodeGroup::check_members() const {
  for (size_t m = 0; m < members_.size(); ++m) SHW_RETURN_IF_ERROR(check_member(m));
  return {};
}

Status NodeGroup::check_member(size_t number) const {
  const Member& member = members_[number];
  if (!member.watch.has_ended()) return {};
  return unavailable(fmt::format("process {} of rank {} ended while ranks of its machine shared "
                                 "reads; load again",
                                 member.process, member.rank))
      .with_detail("ended_rank", fmt::to_string(member.rank));
}

}  // namespace shardwright::exec::internal
