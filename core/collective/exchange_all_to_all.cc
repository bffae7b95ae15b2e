// SPDX-License-Identifier: Apache-2.0
//
// The steps in which every rank has something for every other: swap moves bytes whose sizes both
// sides know, without a header, so that they lie where they are used; trade moves parts of any
// size, each behind a header, and their sizes before them unless all are equal. Both open as every
// step does, and look at what a rank sent to itself: it must come back as it was.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/copy_bytes.h"
#include "core/collective/exchange_internal.h"

namespace shardwright::collective {
namespace {

using internal::Header;
using internal::total_bytes;

// Of the part that a rank sends to itself without a header: so much is compared.
constexpr size_t kComparedBytes = size_t{64} * 1024;

Status check_fit(const char* what, std::span<const uint64_t> sizes, size_t world, size_t bytes) {
  if (sizes.size() != world)
    return internal_error(fmt::format("{}: {} sizes for {} ranks", what, sizes.size(), world));
  SHW_ASSIGN_OR_RETURN(const size_t total, total_bytes(sizes));
  if (total == bytes) return {};
  return internal_error(
      fmt::format("{}: sizes of {} bytes with {} bytes of memory", what, total, bytes));
}

// The part of one rank among parts that lie back to back; the sizes were added before.
std::span<const std::byte> part_at(std::span<const std::byte> all, std::span<const uint64_t> sizes,
                                   size_t rank) {
  size_t begin = 0;
  for (const uint64_t size : sizes.first(rank)) begin += static_cast<size_t>(size);
  return all.subspan(begin, static_cast<size_t>(sizes[rank]));
}

}  // namespace

Status Exchange::move_all_to_all(const Rows& rows) {
  Status moved = collective_.all_to_all_v(call_, rows.in, rows.in_sizes, rows.out, rows.out_sizes);
  return moved.ok() ? moved : break_off(std::move(moved));
}

Status Exchange::check_own_part(const Rows& rows, size_t most_bytes) {
  const auto own = static_cast<size_t>(rank());
  const auto sent = part_at(rows.in, rows.in_sizes, own);
  const auto received = part_at(rows.out, rows.out_sizes, own);
  const size_t compared = std::min(sent.size(), most_bytes);
  const bool same = sent.size() == received.size() &&
                    std::ranges::equal(sent.first(compared), received.first(compared));
  return same ? Status() : garbled();
}

Status Exchange::swap(uint32_t tag, const Status& mine, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) noexcept {
  return whole([&]() -> Status {
    const auto world = static_cast<size_t>(size());
    const auto own = static_cast<size_t>(rank());
    Status ready = mine;
    if (ready.ok()) {
      ready = without_exceptions("the sizes of a swap", [&]() -> Status {
        SHW_RETURN_IF_ERROR(check_fit("what a rank sends", in_sizes, world, in.size()));
        SHW_RETURN_IF_ERROR(check_fit("what a rank receives", out_sizes, world, out.size()));
        if (in_sizes[own] == out_sizes[own]) return {};
        return internal_error(fmt::format("rank {} sends itself {} bytes and expects {}", own,
                                          in_sizes[own], out_sizes[own]));
      });
    }
    SHW_RETURN_IF_ERROR(open_step({tag, {}, {}}, ready).status());
    if (world == 1) {
      copy_bytes(in, out);
      return {};
    }
    const Rows rows{in, in_sizes, out, out_sizes};
    SHW_RETURN_IF_ERROR(move_all_to_all(rows));
    return check_own_part(rows, kComparedBytes);
  });
}

Status Exchange::compose_parts(uint32_t tag, std::span<const std::vector<std::byte>> parts,
                               Gathered* all, Range* sizes) {
  const Header header{call_.sequence, tag, 0};
  const std::span<const std::byte> front = std::as_bytes(std::span(&header, 1));
  return without_exceptions("the parts for all ranks", [&]() -> Status {
    if (std::cmp_not_equal(parts.size(), size()))
      return internal_error(fmt::format("{} parts for {} ranks", parts.size(), size()));
    all->sent_sizes_.clear();
    for (const std::vector<std::byte>& part : parts) {
      const auto bytes = static_cast<int64_t>(part.size());
      *sizes = {std::min(sizes->least, bytes), std::max(sizes->most, bytes)};
      all->sent_sizes_.push_back(sizeof(header) + part.size());
    }
    SHW_ASSIGN_OR_RETURN(const size_t total, total_bytes(all->sent_sizes_));
    all->sent_.clear();
    all->sent_.reserve(total);
    for (const std::vector<std::byte>& part : parts) {
      all->sent_.insert(all->sent_.end(), front.begin(), front.end());
      all->sent_.insert(all->sent_.end(), part.begin(), part.end());
    }
    return {};
  });
}

// How many bytes each rank sends this one, headers included.
Status Exchange::trade_sizes(const Range& sizes, Gathered* all) {
  all->sizes_ = all->sent_sizes_;
  if (sizes.least < 0 || sizes.least > sizes.most) return garbled();
  if (sizes.least != sizes.most) {
    all->size_of_size_.assign(all->sizes_.size(), sizeof(uint64_t));
    const Rows rows{std::as_bytes(std::span(all->sent_sizes_)), all->size_of_size_,
                    std::as_writable_bytes(std::span(all->sizes_)), all->size_of_size_};
    SHW_RETURN_IF_ERROR(move_all_to_all(rows));
    SHW_RETURN_IF_ERROR(check_own_part(rows, sizeof(uint64_t)));
  }
  uint64_t end = 0;
  for (const uint64_t each : all->sizes_) {
    const uint64_t part = each - sizeof(Header);
    if (std::cmp_less(part, sizes.least) || std::cmp_greater(part, sizes.most)) return garbled();
    all->begins_.push_back(end + sizeof(Header));
    if (!checked_add(end, each, &end))
      return break_off(internal_error("ranks bring more bytes than can be counted"));
  }
  return {};
}

Status Exchange::trade(uint32_t tag, const Status& mine,
                       std::span<const std::vector<std::byte>> parts, Gathered* all) noexcept {
  return whole([&]() -> Status {
    all->sizes_.clear();
    all->begins_.clear();
    Opening own{tag, {}, {}};
    Status ready = mine;
    if (ready.ok()) ready = compose_parts(tag, parts, all, &own.sizes);
    SHW_ASSIGN_OR_RETURN(const Opening opened, open_step(own, ready));
    if (size() == 1) {
      all->sizes_.push_back(all->sent_sizes_[0]);
      all->begins_.push_back(sizeof(Header));
      all->received_.swap(all->sent_);
      return {};
    }
    SHW_RETURN_IF_ERROR(trade_sizes(opened.sizes, all));
    const Result<size_t> total = total_bytes(all->sizes_);
    if (!total.ok()) return break_off(total.status());
    all->received_.resize(*total);
    const Rows rows{all->sent_, all->sent_sizes_, all->received_, all->sizes_};
    SHW_RETURN_IF_ERROR(move_all_to_all(rows));
    std::span<const std::byte> rest = all->received_;
    for (size_t from = 0; from < all->sizes_.size(); ++from) {
      SHW_RETURN_IF_ERROR(check_header(from, rest));
      rest = rest.subspan(static_cast<size_t>(all->sizes_[from]));
    }
    return check_own_part(rows, all->sent_.size());
  });
}

}  // namespace shardwright::collective
