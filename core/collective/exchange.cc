// SPDX-License-Identifier: Apache-2.0
//
// One step of an exchange:
//   1. all_gather of {header, bytes}: 24 bytes per rank. Now everybody knows whether all are at the
//      same step, who has failed, and how many bytes follow.
//   2. When a rank has failed: all_gather_v of the failures; the lowest rank's cause wins.
//   3. Else the payload, each with its header in front: all_gather_v, or broadcast from rank 0.
// A world of one rank exchanges nothing.
#include <bit>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"
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
static_assert(sizeof(Header) == 16);

struct Opening {
  Header header;
  uint64_t bytes = 0;
};
static_assert(sizeof(Opening) == 24);

std::vector<std::byte> with_header(const Header& header, std::span<const std::byte> bytes) {
  std::vector<std::byte> payload(sizeof(header) + bytes.size());
  std::memcpy(payload.data(), &header, sizeof(header));
  if (!bytes.empty()) std::memcpy(payload.data() + sizeof(header), bytes.data(), bytes.size());
  return payload;
}

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

}  // namespace

struct Exchange::Step {
  Call call;
  std::vector<Opening> openings;  // one per rank
};

Exchange::Exchange(Collective& collective, int64_t timeout_ns)
    : collective_(collective), timeout_ns_(timeout_ns) {}

Status Exchange::break_off(Status failure) {
  broken_ = failure;
  collective_.abort(failure);
  return failure;
}

Result<Exchange::Step> Exchange::open_step(uint32_t tag, const Status& mine, uint64_t bytes) {
  SHW_RETURN_IF_ERROR(broken_);
  Step step;
  step.call = {sequence_++, tag, timeout_ns_};
  const Opening own{{step.call.sequence, tag, static_cast<uint32_t>(mine.code())}, bytes};
  step.openings.resize(static_cast<size_t>(size()));
  Status moved = collective_.all_gather(step.call, std::as_bytes(std::span(&own, 1)),
                                        std::as_writable_bytes(std::span(step.openings)));
  if (!moved.ok()) return break_off(std::move(moved));
  SHW_RETURN_IF_ERROR(check_order(step));
  return step;
}

Status Exchange::check_order(const Step& step) {
  const Header& expected = step.openings[0].header;
  for (size_t rank = 1; rank < step.openings.size(); ++rank) {
    const Header& found = step.openings[rank].header;
    if (found.sequence != expected.sequence || found.tag != expected.tag)
      return break_off(out_of_step(rank, expected, found));
  }
  return {};
}

Status Exchange::check_header(const Step& step, size_t rank, std::span<const std::byte> payload) {
  Header found;
  if (payload.size() < sizeof(found))
    return break_off(internal_error("a payload came without header"));
  std::memcpy(&found, payload.data(), sizeof(found));
  const Header expected{step.call.sequence, step.call.tag, 0};
  if (found.sequence == expected.sequence && found.tag == expected.tag) return {};
  return break_off(out_of_step(rank, expected, found));
}

// Success when nobody has failed. Every rank returns the same code and text.
Status Exchange::failure_of_all(const Step& step, const Status& mine) {
  size_t lowest = step.openings.size();
  size_t failed = 0;
  for (size_t rank = step.openings.size(); rank-- > 0;) {
    if (step.openings[rank].header.status == 0) continue;
    lowest = rank;
    ++failed;
  }
  if (failed == 0) return {};
  if (size() == 1) return mine;
  const std::vector<std::byte> own = internal::encode_status(mine);
  const uint64_t own_bytes = own.size();
  std::vector<uint64_t> sizes(step.openings.size());
  Status moved = collective_.all_gather(step.call, std::as_bytes(std::span(&own_bytes, 1)),
                                        std::as_writable_bytes(std::span(sizes)));
  if (!moved.ok()) return break_off(std::move(moved));
  SHW_ASSIGN_OR_RETURN(const size_t total, total_bytes(sizes));
  std::vector<std::byte> all(total);
  moved = collective_.all_gather_v(step.call, own, all, sizes);
  if (!moved.ok()) return break_off(std::move(moved));
  SHW_ASSIGN_OR_RETURN(const size_t begin, total_bytes(std::span(sizes).first(lowest)));
  Status cause =
      internal::decode_status(std::span(all).subspan(begin, static_cast<size_t>(sizes[lowest])));
  const bool names_rank = !cause.detail("rank").empty();
  std::string text = fmt::format("rank {} of {} failed", lowest, size());
  if (failed > 1)
    text += fmt::format(", {} other rank{} failed too", failed - 1, failed == 2 ? "" : "s");
  cause = std::move(cause).annotated(text);
  if (!names_rank) cause = std::move(cause).with_detail("rank", fmt::to_string(lowest));
  return with_own_exception(std::move(cause), mine);
}

Result<std::vector<std::vector<std::byte>>> Exchange::gather_payloads(
    const Step& step, std::span<const std::byte> bytes) {
  std::vector<std::vector<std::byte>> parts;
  if (size() == 1) {
    parts.emplace_back(bytes.begin(), bytes.end());
    return parts;
  }
  std::vector<uint64_t> sizes;
  for (const Opening& opening : step.openings) {
    uint64_t with_its_header = 0;
    if (!checked_add<uint64_t>(opening.bytes, sizeof(Header), &with_its_header))
      return break_off(internal_error("a rank brings more bytes than can be counted"));
    sizes.push_back(with_its_header);
  }
  SHW_ASSIGN_OR_RETURN(const size_t total, total_bytes(sizes));
  std::vector<std::byte> all(total);
  Status moved = collective_.all_gather_v(
      step.call, with_header({step.call.sequence, step.call.tag, 0}, bytes), all, sizes);
  if (!moved.ok()) return break_off(std::move(moved));
  std::span<const std::byte> rest = all;
  for (size_t rank = 0; rank < sizes.size(); ++rank) {
    const std::span<const std::byte> payload = rest.first(static_cast<size_t>(sizes[rank]));
    SHW_RETURN_IF_ERROR(check_header(step, rank, payload));
    parts.emplace_back(payload.begin() + sizeof(Header), payload.end());
    rest = rest.subspan(payload.size());
  }
  return parts;
}

Result<std::vector<std::byte>> Exchange::share_payload(const Step& step,
                                                       std::span<const std::byte> bytes) {
  if (size() == 1) return std::vector<std::byte>(bytes.begin(), bytes.end());
  uint64_t size_bytes = 0;
  if (!checked_add<uint64_t>(step.openings[0].bytes, sizeof(Header), &size_bytes))
    return break_off(internal_error("the coordinator brings more bytes than can be counted"));
  std::vector<std::byte> payload(static_cast<size_t>(size_bytes));
  if (is_coordinator()) payload = with_header({step.call.sequence, step.call.tag, 0}, bytes);
  Status moved = collective_.broadcast(step.call, payload, /*root=*/0);
  if (!moved.ok()) return break_off(std::move(moved));
  SHW_RETURN_IF_ERROR(check_header(step, 0, payload));
  payload.erase(payload.begin(), payload.begin() + sizeof(Header));
  return payload;
}

Result<std::vector<std::vector<std::byte>>> Exchange::gather_all(uint32_t tag, const Status& mine,
                                                                 std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(const Step step, open_step(tag, mine, bytes.size()));
  SHW_RETURN_IF_ERROR(failure_of_all(step, mine));
  return gather_payloads(step, bytes);
}

Status Exchange::agree(uint32_t tag, const Status& mine) {
  SHW_ASSIGN_OR_RETURN(const Step step, open_step(tag, mine, 0));
  return failure_of_all(step, mine);
}

Result<std::vector<std::byte>> Exchange::broadcast(uint32_t tag, const Status& mine,
                                                   std::span<const std::byte> bytes) {
  SHW_ASSIGN_OR_RETURN(const Step step, open_step(tag, mine, bytes.size()));
  SHW_RETURN_IF_ERROR(failure_of_all(step, mine));
  return share_payload(step, bytes);
}

// The parts travel together: u64 end offset of each part, then the parts.
Result<std::vector<std::byte>> Exchange::scatter(uint32_t tag, const Status& mine,
                                                 std::span<const std::vector<std::byte>> parts) {
  Status ready = mine;
  if (ready.ok() && is_coordinator() && std::cmp_not_equal(parts.size(), size()))
    ready = internal_error(fmt::format("{} parts for {} ranks", parts.size(), size()));
  const size_t ends_bytes = static_cast<size_t>(size()) * sizeof(uint64_t);
  std::vector<std::byte> joined;
  if (ready.ok() && is_coordinator()) {
    joined.resize(ends_bytes);
    for (size_t rank = 0; rank < parts.size(); ++rank) {
      joined.insert(joined.end(), parts[rank].begin(), parts[rank].end());
      const uint64_t end = joined.size();
      std::memcpy(joined.data() + rank * sizeof(end), &end, sizeof(end));
    }
  }
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> all, broadcast(tag, ready, joined));
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
}

void Exchange::abort(const Status& cause) {
  if (broken_.ok()) broken_ = cause.ok() ? aborted("this rank has left the exchange") : cause;
  collective_.abort(broken_);
}

}  // namespace shardwright::collective
