// SPDX-License-Identifier: Apache-2.0
//
// One step of an exchange:
//   1. all_reduce of a handful of numbers: who is where, the lowest rank that has failed, and how
//      many bytes move. The least of each number over all ranks, and the most as the least of its
//      complement.
//   2. When a rank has failed: how many did (all_reduce), and the lowest one broadcasts its status.
//   3. Else the payload, with headers in front: gather_v to rank 0, broadcast or scatter_v from it,
//      all_to_all_v between all (exchange_all_to_all.cc). Only where ranks move unequal numbers of
//      bytes, the numbers go before it the same way.
// A world of one rank carries no payload.
//
// A transport may carry anything. The numbers of 1 and 2 travel twice and must come back the same,
// and not above what this rank said; sizes that are handed on always fit the memory they go with,
// and what is allocated for others is what they said.
#include "core/collective/exchange.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"
#include "core/collective/exchange_internal.h"
#include "core/collective/status_bytes_internal.h"

namespace shardwright::collective {
namespace {

using internal::Header;
using internal::total_bytes;

constexpr size_t kMostWords = 16;       // of one reduction
constexpr int64_t kNobody = INT64_MAX;  // the least of no rank

// Where a rank is, as one number. A sequence comes back to its beginning after 2^31 steps.
uint64_t position_of(uint64_t sequence, uint32_t tag) {
  return (sequence & 0x7FFF'FFFF) << 32 | tag;
}

std::string position_text(uint64_t position) {
  return fmt::format("number {} tag {:#x}", position >> 32, position & 0xFFFF'FFFF);
}

// A rank and what it says, so that the least is that of the lowest rank.
int64_t of_rank(int32_t rank, uint32_t value) {
  return static_cast<int64_t>(rank) << 32 | value;
}

// The failure that all ranks return, on this one: where a callback of its own host failed, too, the
// exception comes out of its own call, whichever rank is named.
Status with_own_exception(Status cause, const Status& mine) {
  const std::string_view key = mine.detail(internal::kHostException);
  if (cause.code() != StatusCode::kHostException || key.empty()) return cause;
  return std::move(cause).with_detail(internal::kHostException, key);
}

// A failure as bytes, in few words when there is no memory for more.
class EncodedStatus {
 public:
  explicit EncodedStatus(const Status& status) {
    try {
      whole_ = internal::encode_status(status);
    } catch (const std::bad_alloc&) {
      brief_bytes_ = internal::encode_status_briefly(status, brief_);
    }
  }
  std::span<std::byte> bytes() {
    return whole_.empty() ? std::span(brief_).first(brief_bytes_) : std::span(whole_);
  }

 private:
  std::vector<std::byte> whole_;
  std::array<std::byte, internal::kBriefStatusBytes> brief_{};
  size_t brief_bytes_ = 0;
};

}  // namespace

Result<size_t> internal::total_bytes(std::span<const uint64_t> sizes) {
  uint64_t total = 0;
  size_t fits = 0;
  for (const uint64_t size : sizes) {
    if (!checked_add(total, size, &total))
      return internal_error("ranks bring more bytes than can be counted");
  }
  if (!checked_cast(total, &fits)) return internal_error("ranks bring more bytes than memory has");
  return fits;
}

// The lowest rank that has failed.
struct Exchange::Failed {
  int32_t rank = 0;
  uint32_t code = 0;
};

// What the coordinator sends to all: each part behind a header. Empty on other ranks.
struct Exchange::Parts {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> sizes;          // with headers
  std::vector<uint64_t> size_of_sizes;  // while sizes are scattered
};

void Gathered::reserve(size_t world, size_t bytes_each) {
  const size_t each = bytes_each + sizeof(Header);
  sent_.reserve(each);
  received_.reserve(world * each);
  sizes_.reserve(world);
  begins_.reserve(world);
  size_of_size_.reserve(world);
}

std::span<const std::byte> Gathered::part(size_t from) const {
  return std::span(received_).subspan(static_cast<size_t>(begins_[from]),
                                      static_cast<size_t>(sizes_[from]) - sizeof(Header));
}

Exchange::Exchange(Collective& collective, int64_t timeout_ns) : collective_(collective) {
  call_.timeout_ns = timeout_ns;
}

Status Exchange::break_off(Status failure) noexcept {
  broken_ = failure;
  if (size() > 1) collective_.abort(failure);
  return failure;
}

Status Exchange::garbled() {
  return break_off(
      data_loss(fmt::format("the transport '{}' did not give rank {} back what it sent itself: "
                            "nothing that it carries can be relied on",
                            collective_.name(), rank()))
          .with_detail("rank", fmt::to_string(rank())));
}

Status Exchange::reduce(std::span<int64_t> words, ReduceOperation operation) {
  std::array<int64_t, 2 * kMostWords> twice{};
  const size_t count = words.size();
  std::ranges::copy(words, twice.begin());
  std::ranges::copy(words, twice.begin() + static_cast<ptrdiff_t>(count));
  Status moved = collective_.all_reduce_i64(call_, std::span(twice).first(2 * count), operation);
  if (!moved.ok()) return break_off(std::move(moved));
  for (size_t i = 0; i < count; ++i) {
    const bool above = operation == ReduceOperation::kMin && twice[i] > words[i];
    if (above || twice[i] != twice[count + i]) return garbled();
    words[i] = twice[i];
  }
  return {};
}

Result<Exchange::Opening> Exchange::open_step(const Opening& own, const Status& mine) {
  told_failure_ = StatusCode::kOk;
  SHW_RETURN_IF_ERROR(broken_);
  call_.tag = own.tag;
  const uint64_t position = position_of(call_.sequence, own.tag);
  const auto here = static_cast<int64_t>(position);
  const auto code = static_cast<uint32_t>(mine.code());
  std::array<int64_t, 10> words{here,
                                ~here,
                                is_coordinator() ? here : kNobody,
                                mine.ok() ? kNobody : of_rank(rank(), code),
                                own.sizes.least,
                                ~own.sizes.most,
                                own.digest[0].least,
                                ~own.digest[0].most,
                                own.digest[1].least,
                                ~own.digest[1].most};
  SHW_RETURN_IF_ERROR(reduce(words, ReduceOperation::kMin));
  ++call_.sequence;
  if (words[0] != ~words[1]) {
    const auto first = static_cast<uint64_t>(words[2]);
    const auto least = static_cast<uint64_t>(words[0]);
    return out_of_step(first, least == first ? static_cast<uint64_t>(~words[1]) : least);
  }
  if (words[2] != here || words[0] != here) return garbled();
  if (words[3] != kNobody) {
    const Failed lowest{static_cast<int32_t>(words[3] >> 32), static_cast<uint32_t>(words[3])};
    const bool is_mine = lowest.rank == rank();
    if (words[3] < 0 || lowest.rank >= size() || lowest.code == 0 ||
        (is_mine && lowest.code != code)) {
      return garbled();
    }
    return failure_of_all(lowest, mine);
  }
  return Opening{
      own.tag, {words[4], ~words[5]}, {Range{words[6], ~words[7]}, Range{words[8], ~words[9]}}};
}

// All ranks have seen it, so that they still can tell who it is.
Status Exchange::out_of_step(uint64_t expected, uint64_t found) {
  const uint64_t here = position_of(call_.sequence - 1, call_.tag);
  std::array<int64_t, 1> lowest{here == expected ? kNobody : rank()};
  SHW_RETURN_IF_ERROR(reduce(lowest, ReduceOperation::kMin));
  const std::string rank = fmt::to_string(lowest[0]);
  return break_off(
      aborted(fmt::format("ranks are out of step: rank 0 is at exchange {}, rank {} at exchange "
                          "{}; every rank must make the same calls in the same order",
                          position_text(expected), rank, position_text(found)))
          .with_detail("rank", rank)
          .with_detail("expected", position_text(expected))
          .with_detail("found", position_text(found))
          .with_detail("sequence", fmt::to_string(found >> 32))
          .with_detail("tag", fmt::to_string(found & 0xFFFF'FFFF)));
}

Status Exchange::compose(uint32_t tag, std::span<const std::byte> bytes,
                         std::vector<std::byte>* payload) {
  const Header header{call_.sequence, tag, 0};
  return without_exceptions("what this rank sends", [&] {
    payload->resize(sizeof(header) + bytes.size());
    std::memcpy(payload->data(), &header, sizeof(header));
    if (!bytes.empty()) std::memcpy(payload->data() + sizeof(header), bytes.data(), bytes.size());
    return Status();
  });
}

// Of a payload that came in this step, whose number was that before the next one.
Status Exchange::check_header(size_t rank, std::span<const std::byte> payload) {
  Header found;
  std::memcpy(&found, payload.data(), sizeof(found));
  if (found.sequence == call_.sequence - 1 && found.tag == call_.tag) return {};
  return break_off(
      data_loss(fmt::format("the transport '{}' brought rank {} the bytes of another exchange from "
                            "rank {}",
                            collective_.name(), this->rank(), rank))
          .with_detail("rank", fmt::to_string(rank)));
}

// Every rank returns the same code and text.
Status Exchange::failure_of_all(const Failed& lowest, const Status& mine) {
  told_failure_ = static_cast<StatusCode>(lowest.code);
  if (size() == 1) return mine;
  EncodedStatus own(lowest.rank == rank() ? mine : Status());
  const auto own_bytes = static_cast<int64_t>(own.bytes().size());
  std::array<int64_t, 2> sums{mine.ok() ? 0 : 1, own_bytes};  // who failed, bytes of the cause
  SHW_RETURN_IF_ERROR(reduce(sums, ReduceOperation::kSum));
  const auto [failed, cause_bytes] = sums;
  const bool sound = failed >= 1 && failed <= size() && cause_bytes >= 1 &&
                     std::cmp_less_equal(cause_bytes, internal::kMaxStatusBytes);
  if (!sound || (own_bytes != 0 && own_bytes != cause_bytes)) return garbled();
  std::vector<std::byte> room;
  std::span<std::byte> told = own.bytes();
  if (told.empty()) {
    room.resize(static_cast<size_t>(cause_bytes));
    told = room;
  }
  Status moved = collective_.broadcast(call_, told, lowest.rank);
  if (!moved.ok()) return break_off(std::move(moved));
  Status cause = internal::decode_status(told);
  const bool names_rank = !cause.detail("rank").empty();
  std::string text = fmt::format("rank {} of {} failed", lowest.rank, size());
  if (failed > 1)
    text += fmt::format(", {} other rank{} failed too", failed - 1, failed == 2 ? "" : "s");
  cause = std::move(cause).annotated(text);
  if (!names_rank) cause = std::move(cause).with_detail("rank", fmt::to_string(lowest.rank));
  return with_own_exception(std::move(cause), mine);
}

Status Exchange::agree(uint32_t tag, const Status& mine) noexcept {
  return whole([&] { return open_step({tag, {}, {}}, mine).status(); });
}

Result<Range> Exchange::range(uint32_t tag, const Status& mine, const Range& said) noexcept {
  return whole([&]() -> Result<Range> {
    SHW_ASSIGN_OR_RETURN(const Opening all, open_step({tag, said, {}}, mine));
    return all.sizes;
  });
}

Result<std::optional<Difference>> Exchange::compare(uint32_t tag, const Status& mine,
                                                    const Said& said) noexcept {
  return whole([&]() -> Result<std::optional<Difference>> {
    Opening own{tag, {}, {}};
    std::array<int64_t, 2> words{};
    std::memcpy(words.data(), said.digest.data(), sizeof(words));
    for (size_t i = 0; i < words.size(); ++i) own.digest[i] = Range::of(words[i]);
    if (is_coordinator()) own.sizes = Range::of(static_cast<int64_t>(said.bytes.size()));
    SHW_ASSIGN_OR_RETURN(const Opening all, open_step(own, mine));
    if (all.digest == own.digest) return std::optional<Difference>();
    if (all.sizes.least != all.sizes.most) return garbled();
    return find_difference(static_cast<uint64_t>(all.sizes.least), said);
  });
}

Result<std::optional<Difference>> Exchange::find_difference(uint64_t first_size, const Said& said) {
  Difference found;
  const auto share = [&](std::vector<std::byte>* bytes, uint64_t size_bytes, int32_t root) {
    bytes->resize(static_cast<size_t>(size_bytes));
    if (rank() == root) copy_bytes(said.bytes, *bytes);
    Status moved = collective_.broadcast(call_, *bytes, root);
    return moved.ok() ? moved : break_off(std::move(moved));
  };
  SHW_RETURN_IF_ERROR(share(&found.first, first_size, /*root=*/0));
  uint32_t own_size = 0;
  if (!checked_cast(said.bytes.size(), &own_size))
    return break_off(internal_error("what ranks compare is too long"));
  const bool differs = !std::ranges::equal(found.first, said.bytes);
  std::array<int64_t, 1> lowest{differs ? of_rank(rank(), own_size) : kNobody};
  SHW_RETURN_IF_ERROR(reduce(lowest, ReduceOperation::kMin));
  if (lowest[0] == kNobody)
    return break_off(internal_error("digests of equal bytes of different ranks differ"));
  const auto other = static_cast<int32_t>(lowest[0] >> 32);
  const auto size_bytes = static_cast<uint32_t>(lowest[0]);
  if (lowest[0] < 0 || other >= size() || (other == rank() && size_bytes != own_size))
    return garbled();
  found.rank = static_cast<size_t>(other);
  SHW_RETURN_IF_ERROR(share(&found.other, size_bytes, other));
  return std::optional(std::move(found));
}

// On the coordinator: how many bytes each rank sends, headers included.
Status Exchange::gather_sizes(const Range& sizes, uint64_t own, Gathered* all) {
  const auto world = static_cast<size_t>(size());
  if (sizes.least != sizes.most) {
    all->sizes_.resize(world);
    all->size_of_size_.assign(world, sizeof(own));
    Status moved = collective_.gather_v(call_, std::as_bytes(std::span(&own, 1)),
                                        std::as_writable_bytes(std::span(all->sizes_)),
                                        all->size_of_size_, /*root=*/0);
    if (!moved.ok()) return break_off(std::move(moved));
    const auto within = [&](uint64_t each) {
      return std::cmp_greater_equal(each, sizes.least) && std::cmp_less_equal(each, sizes.most);
    };
    if (all->sizes_[0] != own || !std::ranges::all_of(all->sizes_, within)) return garbled();
  } else {
    all->sizes_.assign(world, own);
  }
  uint64_t end = 0;
  for (uint64_t& each : all->sizes_) {
    all->begins_.push_back(end + sizeof(Header));
    if (!checked_add<uint64_t>(each, sizeof(Header), &each) || !checked_add(end, each, &end))
      return break_off(internal_error("ranks bring more bytes than can be counted"));
  }
  return {};
}

Status Exchange::receive_all(Gathered* all) {
  const Result<size_t> total = total_bytes(all->sizes_);
  if (!total.ok()) return break_off(total.status());
  all->received_.resize(*total);
  Status moved = collective_.gather_v(call_, all->sent_, all->received_, all->sizes_, /*root=*/0);
  if (!moved.ok()) return break_off(std::move(moved));
  std::span<const std::byte> rest = all->received_;
  for (size_t rank = 0; rank < all->sizes_.size(); ++rank) {
    SHW_RETURN_IF_ERROR(check_header(rank, rest));
    rest = rest.subspan(static_cast<size_t>(all->sizes_[rank]));
  }
  return {};
}

Status Exchange::gather(uint32_t tag, const Status& mine, std::span<const std::byte> bytes,
                        Gathered* all) noexcept {
  return whole([&]() -> Status {
    all->sizes_.clear();
    all->begins_.clear();
    Status ready = mine;
    if (ready.ok()) ready = compose(tag, bytes, &all->sent_);
    const Range own = Range::of(static_cast<int64_t>(bytes.size()));
    SHW_ASSIGN_OR_RETURN(const Opening opened, open_step({tag, own, {}}, ready));
    const uint64_t own_size = bytes.size();
    if (is_coordinator()) {
      if (size() > 1) {
        SHW_RETURN_IF_ERROR(gather_sizes(opened.sizes, own_size, all));
        return receive_all(all);
      }
      all->sizes_.push_back(own_size + sizeof(Header));
      all->begins_.push_back(sizeof(Header));
      all->received_.swap(all->sent_);
      return {};
    }
    Status moved;
    if (opened.sizes.least != opened.sizes.most)
      moved = collective_.gather_v(call_, std::as_bytes(std::span(&own_size, 1)), {}, {}, 0);
    if (moved.ok()) moved = collective_.gather_v(call_, all->sent_, {}, {}, /*root=*/0);
    return moved.ok() ? moved : break_off(std::move(moved));
  });
}

Result<std::span<const std::byte>> Exchange::broadcast(uint32_t tag, const Status& mine,
                                                       std::span<const std::byte> bytes,
                                                       std::vector<std::byte>* room) noexcept {
  return whole([&]() -> Result<std::span<const std::byte>> {
    Status ready = mine;
    if (ready.ok() && is_coordinator()) ready = compose(tag, bytes, room);
    const Range own = is_coordinator() ? Range::of(static_cast<int64_t>(bytes.size())) : Range();
    SHW_ASSIGN_OR_RETURN(const Opening opened, open_step({tag, own, {}}, ready));
    if (size() > 1) {
      uint64_t size_bytes = 0;
      if (opened.sizes.least != opened.sizes.most || opened.sizes.least < 0) return garbled();
      if (!checked_add(static_cast<uint64_t>(opened.sizes.least), uint64_t{sizeof(Header)},
                       &size_bytes))
        return break_off(internal_error("the coordinator brings more bytes than can be counted"));
      room->resize(static_cast<size_t>(size_bytes));
      Status moved = collective_.broadcast(call_, *room, /*root=*/0);
      if (!moved.ok()) return break_off(std::move(moved));
      SHW_RETURN_IF_ERROR(check_header(0, *room));
    }
    return std::span<const std::byte>(*room).subspan(sizeof(Header));
  });
}

Result<std::vector<std::byte>> Exchange::receive_part(const Range& sizes, const Parts& parts) {
  auto own = static_cast<uint64_t>(sizes.least);
  if (sizes.least < 0 || sizes.least > sizes.most) return garbled();
  if (sizes.least != sizes.most) {
    Status moved =
        collective_.scatter_v(call_, std::as_bytes(std::span(parts.sizes)), parts.size_of_sizes,
                              std::as_writable_bytes(std::span(&own, 1)), /*root=*/0);
    if (!moved.ok()) return break_off(std::move(moved));
    own -= sizeof(Header);
    if (std::cmp_less(own, sizes.least) || std::cmp_greater(own, sizes.most)) return garbled();
  }
  if (is_coordinator() && parts.sizes[0] != own + sizeof(Header)) return garbled();
  std::vector<std::byte> part(static_cast<size_t>(own) + sizeof(Header));
  Status moved = collective_.scatter_v(call_, parts.bytes, parts.sizes, part, /*root=*/0);
  if (!moved.ok()) return break_off(std::move(moved));
  SHW_RETURN_IF_ERROR(check_header(0, part));
  part.erase(part.begin(), part.begin() + sizeof(Header));
  return part;
}

Result<std::vector<std::byte>> Exchange::scatter(
    uint32_t tag, const Status& mine, std::span<const std::vector<std::byte>> parts) noexcept {
  return whole([&]() -> Result<std::vector<std::byte>> {
    const auto world = static_cast<size_t>(size());
    const Header header{call_.sequence, tag, 0};
    const std::span<const std::byte> front = std::as_bytes(std::span(&header, 1));
    Parts joined;
    Opening own{tag, {}, {}};
    Status ready = mine;
    if (ready.ok() && is_coordinator()) {
      ready = without_exceptions("the parts for all ranks", [&]() -> Status {
        if (parts.size() != world)
          return internal_error(fmt::format("{} parts for {} ranks", parts.size(), world));
        joined.sizes.reserve(world);
        for (const std::vector<std::byte>& part : parts) {
          own.sizes.least = std::min(own.sizes.least, static_cast<int64_t>(part.size()));
          own.sizes.most = std::max(own.sizes.most, static_cast<int64_t>(part.size()));
          joined.sizes.push_back(sizeof(header) + part.size());
        }
        joined.size_of_sizes.assign(world, sizeof(uint64_t));
        SHW_ASSIGN_OR_RETURN(const size_t total, total_bytes(joined.sizes));
        joined.bytes.reserve(total);
        for (const std::vector<std::byte>& part : parts) {
          joined.bytes.insert(joined.bytes.end(), front.begin(), front.end());
          joined.bytes.insert(joined.bytes.end(), part.begin(), part.end());
        }
        return {};
      });
    }
    SHW_ASSIGN_OR_RETURN(const Opening opened, open_step(own, ready));
    if (size() == 1) return parts[0];
    return receive_part(opened.sizes, joined);
  });
}

void Exchange::abort(const Status& cause) noexcept {
  if (broken_.ok()) {
    broken_ = cause.ok()
                  ? without_exceptions("leaving an exchange",
                                       [] { return aborted("this rank has left the exchange"); })
                  : cause;
  }
  collective_.abort(broken_);
}

}  // namespace shardwright::collective
