// SPDX-License-Identifier: Apache-2.0
//
// One step of an exchange:
//   1. all_gather of {header, bytes}: 24 bytes per rank. Now everybody knows whether all are at the
//      same step, who has failed, and how many bytes follow.
//   2. When a rank has failed: all_gather_v of the failures; the lowest rank's cause wins.
//   3. Else the payload, each with its header in front: all_gather_v, or broadcast from rank 0.
// A world of one rank exchanges nothing.
//
// A transport may carry anything: this rank's own slot must hold what it said, so that sizes that
// are handed on always fit the memory they go with; what it allocates for others is what they said.
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/without_exceptions.h"
#include "core/collective/collective.h"
#include "core/collective/status_bytes_internal.h"

namespace shardwright::collective {
namespace {

static_assert(std::endian::native == std::endian::little, "headers travel in little-endian order");

struct Header {
  uint64_t sequence = 0;
  uint32_t tag = 0;
  uint32_t status = 0;
};
static_assert(sizeof(Header) == Exchange::kHeaderBytes);

std::string position_text(const Header& header) {
  return fmt::format("number {} tag {:#x}", header.sequence, header.tag);
}

Status out_of_step(size_t rank, const Header& expected, const Header& found) {
  return aborted(fmt::format("ranks are out of step: rank 0 is at exchange {}, rank {} at exchange "
                             "{}; every rank must make the same calls in the same order",
                             position_text(expected), rank, position_text(found)))
      .with_detail("rank", fmt::to_string(rank))
      .with_detail("expected", position_text(expected))
      .with_detail("found", position_text(found))
      .with_detail("sequence", fmt::to_string(found.sequence))
      .with_detail("tag", fmt::to_string(found.tag));
}

Status garbled(const Collective& collective) {
  return data_loss(fmt::format("the transport '{}' did not give rank {} back what it sent itself: "
                               "nothing that it carries can be relied on",
                               collective.name(), collective.rank()))
      .with_detail("rank", fmt::to_string(collective.rank()));
}

// Sizes of all ranks as positions in one buffer.
Result<size_t> total_bytes(std::span<const uint64_t> sizes) {
  uint64_t total = 0;
  size_t fits = 0;
  for (const uint64_t size : sizes) {
    if (!checked_add(total, size, &total))
      return internal_error("ranks bring more bytes than can be counted");
  }
  if (!checked_cast(total, &fits)) return internal_error("ranks bring more bytes than memory has");
  return fits;
}

// The failure that all ranks return, on this one: where a callback of its own host failed, too, the
// exception comes out of its own call, whichever rank is named.
Status with_own_exception(Status cause, const Status& mine) {
  const std::string_view key = mine.detail(internal::kHostException);
  if (cause.code() != StatusCode::kHostException || key.empty()) return cause;
  return std::move(cause).with_detail(internal::kHostException, key);
}

// No bytes when there is no memory for a description; the code is told by the opening.
std::vector<std::byte> encoded(const Status& status) {
  try {
    return internal::encode_status(status);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Status decoded(std::span<const std::byte> bytes, uint32_t code) {
  const auto known = static_cast<StatusCode>(code);
  if (!bytes.empty() || status_code_name(known) == "UNRECOGNISED")
    return internal::decode_status(bytes);
  return {known, "it had no memory to say why"};
}

}  // namespace

void Gathered::reserve(size_t world, size_t bytes_each) {
  const size_t each = bytes_each + sizeof(Header);
  sent_.reserve(each);
  received_.reserve(world * each);
  sizes_.reserve(world);
  begins_.reserve(world);
}

std::span<const std::byte> Gathered::part(size_t from) const {
  return std::span(received_).subspan(static_cast<size_t>(begins_[from]),
                                      static_cast<size_t>(sizes_[from]) - sizeof(Header));
}

Exchange::Exchange(Collective& collective, int64_t timeout_ns) : collective_(collective) {
  call_.timeout_ns = timeout_ns;
}

template <typename Step>
auto Exchange::whole(const Step& step) noexcept -> decltype(step()) {
  try {
    return step();
  } catch (...) {
    return break_off(failure_of_exception("an exchange between ranks"));
  }
}

Status Exchange::break_off(Status failure) noexcept {
  broken_ = failure;
  if (size() > 1) collective_.abort(failure);
  return failure;
}

Status Exchange::open_step(uint32_t tag, const Status& mine, uint64_t bytes) {
  told_failure_ = StatusCode::kOk;
  SHW_RETURN_IF_ERROR(broken_);
  static_assert(sizeof(Opening) == 24, "an opening travels as it lies in memory");
  openings_.resize(static_cast<size_t>(size()));
  call_.tag = tag;
  const Opening own{call_.sequence, tag, static_cast<uint32_t>(mine.code()), bytes};
  Status moved = collective_.all_gather(call_, std::as_bytes(std::span(&own, 1)),
                                        std::as_writable_bytes(std::span(openings_)));
  if (!moved.ok()) return break_off(std::move(moved));
  ++call_.sequence;
  return check_openings(own);
}

Status Exchange::check_openings(const Opening& own) {
  if (openings_[static_cast<size_t>(rank())] != own) return break_off(garbled(collective_));
  const Header expected{openings_[0].sequence, openings_[0].tag, 0};
  for (size_t rank = 1; rank < openings_.size(); ++rank) {
    const Header found{openings_[rank].sequence, openings_[rank].tag, 0};
    if (found.sequence != expected.sequence || found.tag != expected.tag)
      return break_off(out_of_step(rank, expected, found));
  }
  return {};
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

Status Exchange::check_header(size_t rank, std::span<const std::byte> payload) {
  Header found;
  if (payload.size() < sizeof(found))
    return break_off(internal_error("a payload came without header"));
  std::memcpy(&found, payload.data(), sizeof(found));
  const Header expected{openings_[rank].sequence, openings_[rank].tag, 0};
  if (found.sequence == expected.sequence && found.tag == expected.tag) return {};
  return break_off(out_of_step(rank, expected, found));
}

// Success when nobody has failed. Every rank returns the same code and text.
Status Exchange::failure_of_all(const Status& mine) {
  size_t lowest = openings_.size();
  size_t failed = 0;
  for (size_t rank = openings_.size(); rank-- > 0;) {
    if (openings_[rank].status == 0) continue;
    lowest = rank;
    ++failed;
  }
  if (failed == 0) return {};
  told_failure_ = static_cast<StatusCode>(openings_[lowest].status);
  if (size() == 1) return mine;
  const std::vector<std::byte> own = encoded(mine);
  const uint64_t own_bytes = own.size();
  std::vector<uint64_t> sizes(openings_.size());
  Status moved = collective_.all_gather(call_, std::as_bytes(std::span(&own_bytes, 1)),
                                        std::as_writable_bytes(std::span(sizes)));
  if (!moved.ok()) return break_off(std::move(moved));
  if (sizes[static_cast<size_t>(rank())] != own_bytes) return break_off(garbled(collective_));
  const Result<size_t> total = total_bytes(sizes);
  if (!total.ok()) return break_off(total.status());
  std::vector<std::byte> all(*total);
  moved = collective_.all_gather_v(call_, own, all, sizes);
  if (!moved.ok()) return break_off(std::move(moved));
  SHW_ASSIGN_OR_RETURN(const size_t begin, total_bytes(std::span(sizes).first(lowest)));
  Status cause = decoded(std::span(all).subspan(begin, static_cast<size_t>(sizes[lowest])),
                         openings_[lowest].status);
  const bool names_rank = !cause.detail("rank").empty();
  std::string text = fmt::format("rank {} of {} failed", lowest, size());
  if (failed > 1)
    text += fmt::format(", {} other rank{} failed too", failed - 1, failed == 2 ? "" : "s");
  cause = std::move(cause).annotated(text);
  if (!names_rank) cause = std::move(cause).with_detail("rank", fmt::to_string(lowest));
  return with_own_exception(std::move(cause), mine);
}

Status Exchange::receive_all(Gathered* all) {
  all->sizes_.clear();
  all->begins_.clear();
  uint64_t end = 0;
  for (const Opening& opening : openings_) {
    uint64_t with_its_header = 0;
    all->begins_.push_back(end + sizeof(Header));
    if (!checked_add<uint64_t>(opening.bytes, sizeof(Header), &with_its_header) ||
        !checked_add(end, with_its_header, &end)) {
      return break_off(internal_error("a rank brings more bytes than can be counted"));
    }
    all->sizes_.push_back(with_its_header);
  }
  if (size() == 1) {
    all->received_.swap(all->sent_);
    return {};
  }
  const Result<size_t> total = total_bytes(all->sizes_);
  if (!total.ok()) return break_off(total.status());
  all->received_.resize(*total);
  Status moved = collective_.all_gather_v(call_, all->sent_, all->received_, all->sizes_);
  if (!moved.ok()) return break_off(std::move(moved));
  std::span<const std::byte> rest = all->received_;
  for (size_t rank = 0; rank < all->sizes_.size(); ++rank) {
    const auto size_bytes = static_cast<size_t>(all->sizes_[rank]);
    SHW_RETURN_IF_ERROR(check_header(rank, rest.first(size_bytes)));
    rest = rest.subspan(size_bytes);
  }
  return {};
}

Status Exchange::gather(uint32_t tag, const Status& mine, std::span<const std::byte> bytes,
                        Gathered* all) noexcept {
  return whole([&]() -> Status {
    Status ready = mine;
    if (ready.ok()) ready = compose(tag, bytes, &all->sent_);
    SHW_RETURN_IF_ERROR(open_step(tag, ready, bytes.size()));
    SHW_RETURN_IF_ERROR(failure_of_all(ready));
    return receive_all(all);
  });
}

Result<std::vector<std::vector<std::byte>>> Exchange::gather_all(
    uint32_t tag, const Status& mine, std::span<const std::byte> bytes) noexcept {
  return whole([&]() -> Result<std::vector<std::vector<std::byte>>> {
    Gathered all;
    SHW_RETURN_IF_ERROR(gather(tag, mine, bytes, &all));
    std::vector<std::vector<std::byte>> parts;
    parts.reserve(all.size());
    for (size_t rank = 0; rank < all.size(); ++rank)
      parts.emplace_back(all.part(rank).begin(), all.part(rank).end());
    return parts;
  });
}

Status Exchange::agree(uint32_t tag, const Status& mine) noexcept {
  return whole([&]() -> Status {
    SHW_RETURN_IF_ERROR(open_step(tag, mine, 0));
    return failure_of_all(mine);
  });
}

Result<std::span<const std::byte>> Exchange::broadcast_into(uint32_t tag, const Status& mine,
                                                            std::span<const std::byte> bytes,
                                                            std::vector<std::byte>* room) {
  Status ready = mine;
  if (ready.ok() && is_coordinator()) ready = compose(tag, bytes, room);
  SHW_RETURN_IF_ERROR(open_step(tag, ready, is_coordinator() ? bytes.size() : 0));
  SHW_RETURN_IF_ERROR(failure_of_all(ready));
  if (size() > 1) {
    uint64_t size_bytes = 0;
    if (!checked_add<uint64_t>(openings_[0].bytes, sizeof(Header), &size_bytes))
      return break_off(internal_error("the coordinator brings more bytes than can be counted"));
    room->resize(static_cast<size_t>(size_bytes));
    Status moved = collective_.broadcast(call_, *room, /*root=*/0);
    if (!moved.ok()) return break_off(std::move(moved));
    SHW_RETURN_IF_ERROR(check_header(0, *room));
  }
  return std::span<const std::byte>(*room).subspan(sizeof(Header));
}

Result<std::span<const std::byte>> Exchange::broadcast(uint32_t tag, const Status& mine,
                                                       std::span<const std::byte> bytes,
                                                       std::vector<std::byte>* room) noexcept {
  return whole([&] { return broadcast_into(tag, mine, bytes, room); });
}

namespace {

// The parts travel together: u64 end offset of each part, then the parts.
Result<std::vector<std::byte>> joined(std::span<const std::vector<std::byte>> parts, size_t world) {
  if (parts.size() != world)
    return internal_error(fmt::format("{} parts for {} ranks", parts.size(), world));
  size_t total = world * sizeof(uint64_t);
  for (const std::vector<std::byte>& part : parts) total += part.size();
  std::vector<std::byte> bytes;
  bytes.reserve(total);
  bytes.resize(world * sizeof(uint64_t));
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    bytes.insert(bytes.end(), parts[rank].begin(), parts[rank].end());
    const uint64_t end = bytes.size();
    std::memcpy(bytes.data() + rank * sizeof(end), &end, sizeof(end));
  }
  return bytes;
}

}  // namespace

Result<std::vector<std::byte>> Exchange::scatter(
    uint32_t tag, const Status& mine, std::span<const std::vector<std::byte>> parts) noexcept {
  return whole([&]() -> Result<std::vector<std::byte>> {
    const auto world = static_cast<size_t>(size());
    const size_t ends_bytes = world * sizeof(uint64_t);
    Result<std::vector<std::byte>> own =
        !mine.ok() ? Result<std::vector<std::byte>>(mine)
        : is_coordinator()
            ? without_exceptions("the parts for all ranks", [&] { return joined(parts, world); })
            : Result<std::vector<std::byte>>(std::vector<std::byte>());
    std::vector<std::byte> room;
    SHW_ASSIGN_OR_RETURN(
        const std::span<const std::byte> all,
        broadcast_into(tag, own.status(),
                       own.ok() ? std::span<const std::byte>(*own) : std::span<const std::byte>(),
                       &room));
    const auto bound = [&](int32_t part) {
      uint64_t end = ends_bytes;
      if (part > 0) {
        std::memcpy(&end, all.data() + static_cast<size_t>(part - 1) * sizeof(end), sizeof(end));
      }
      return end;
    };
    if (all.size() < ends_bytes || bound(rank()) > bound(rank() + 1) ||
        bound(rank() + 1) > all.size() || bound(rank()) < ends_bytes) {
      return break_off(internal_error("the coordinator sent parts that do not fit together"));
    }
    return std::vector<std::byte>(all.begin() + static_cast<ptrdiff_t>(bound(rank())),
                                  all.begin() + static_cast<ptrdiff_t>(bound(rank() + 1)));
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
