// SPDX-License-Identifier: Apache-2.0
//
// gather_v, scatter_v and all_to_all_v over a transport that has none: ranks tell their sizes, then
// everybody gets everything and takes its own. A rank that cannot go on aborts, because others
// cannot know.
#include "core/collective/collective.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/copy_bytes.h"
#include "core/base/without_exceptions.h"

namespace shardwright::collective {
namespace {

Status no_rank(std::string_view operation, int32_t root, int32_t world) {
  return invalid_argument(fmt::format("{} with root {} of {} ranks", operation, root, world))
      .with_detail("rank", fmt::to_string(root));
}

Status no_fit(std::string_view operation, const Collective& collective) {
  return invalid_argument(fmt::format("{}: the sizes that the root gives on '{}' are not those of "
                                      "the ranks (found on rank {})",
                                      operation, collective.name(), collective.rank()))
      .with_detail("rank", fmt::to_string(collective.rank()));
}

// Of all_to_all_v: what this rank says does not go together, or is not what another one says.
Status no_pair(const Collective& collective, std::string_view what) {
  return invalid_argument(fmt::format("all_to_all_v on '{}': rank {} {}", collective.name(),
                                      collective.rank(), what))
      .with_detail("rank", fmt::to_string(collective.rank()));
}

Result<size_t> total_of(std::span<const uint64_t> sizes) {
  uint64_t total = 0;
  size_t fits = 0;
  for (const uint64_t size : sizes) {
    if (!checked_add(total, size, &total)) return invalid_argument("sizes that cannot be added");
  }
  if (!checked_cast(total, &fits)) return invalid_argument("more bytes than memory has");
  return fits;
}

bool is_total_of(std::span<const uint64_t> sizes, size_t bytes) {
  const Result<size_t> total = total_of(sizes);
  return total.ok() && *total == bytes;
}

// Runs body(&moved), which returns early when the transport fails (moved). What fails on this rank
// alone ends the collective.
template <typename Body>
Status emulated(Collective& collective, const char* operation, const Body& body) {
  Status moved;
  Status mine = without_exceptions(operation, [&] { return body(&moved); });
  if (mine.ok()) return moved;
  collective.abort(mine);
  return mine;
}

}  // namespace

Status Collective::gather_v(const Call& call, std::span<const std::byte> in,
                            std::span<std::byte> out, std::span<const uint64_t> sizes,
                            int32_t root) {
  if (root < 0 || root >= size()) return no_rank("gather_v", root, size());
  return emulated(*this, "gather_v", [&](Status* moved) -> Status {
    const uint64_t own = in.size();
    std::vector<uint64_t> told(static_cast<size_t>(size()));
    *moved = all_gather(call, std::as_bytes(std::span(&own, 1)),
                        std::as_writable_bytes(std::span(told)));
    if (!moved->ok()) return {};
    SHW_ASSIGN_OR_RETURN(const size_t total, total_of(told));
    if (told[static_cast<size_t>(rank())] != own) return no_fit("gather_v", *this);
    if (rank() == root && (out.size() != total || !std::ranges::equal(sizes, told)))
      return no_fit("gather_v", *this);
    std::vector<std::byte> all(rank() == root ? 0 : total);
    *moved = all_gather_v(call, in, rank() == root ? out : std::span(all), told);
    return {};
  });
}

Status Collective::scatter_v(const Call& call, std::span<const std::byte> in,
                             std::span<const uint64_t> sizes, std::span<std::byte> out,
                             int32_t root) {
  if (root < 0 || root >= size()) return no_rank("scatter_v", root, size());
  return emulated(*this, "scatter_v", [&](Status* moved) -> Status {
    std::vector<uint64_t> told(static_cast<size_t>(size()));
    if (rank() == root) {
      if (sizes.size() != told.size()) return no_fit("scatter_v", *this);
      std::ranges::copy(sizes, told.begin());
    }
    *moved = broadcast(call, std::as_writable_bytes(std::span(told)), root);
    if (!moved->ok()) return {};
    const auto own = static_cast<size_t>(rank());
    SHW_ASSIGN_OR_RETURN(const size_t total, total_of(told));
    SHW_ASSIGN_OR_RETURN(const size_t begin, total_of(std::span(told).first(own)));
    if (told[own] != out.size() || (rank() == root && in.size() != total))
      return no_fit("scatter_v", *this);
    std::vector<std::byte> all(total);
    if (rank() == root) copy_bytes(in, all);
    *moved = broadcast(call, all, root);
    if (moved->ok()) copy_bytes(std::span(all).subspan(begin, out.size()), out);
    return {};
  });
}

Status Collective::all_to_all_v(const Call& call, std::span<const std::byte> in,
                                std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                                std::span<const uint64_t> out_sizes) {
  return emulated(*this, "all_to_all_v", [&](Status* moved) -> Status {
    const auto world = static_cast<size_t>(size());
    const auto own = static_cast<size_t>(rank());
    if (in_sizes.size() != world || !is_total_of(in_sizes, in.size()) ||
        out_sizes.size() != world || !is_total_of(out_sizes, out.size()))
      return no_pair(*this, "has sizes that are not those of its ranks and memory");
    std::vector<uint64_t> told(world * world);  // a row of each rank that sends
    *moved = all_gather(call, std::as_bytes(in_sizes), std::as_writable_bytes(std::span(told)));
    if (!moved->ok()) return {};
    const auto row = [&](size_t from) { return std::span(told).subspan(from * world, world); };
    std::vector<uint64_t> sent(world);
    for (size_t from = 0; from < world; ++from) {
      SHW_ASSIGN_OR_RETURN(sent[from], total_of(row(from)));
      if (row(from)[own] != out_sizes[from]) {
        return no_pair(*this, fmt::format("expects {} bytes of rank {}, which sends {}",
                                          out_sizes[from], from, row(from)[own]));
      }
    }
    if (!std::ranges::equal(row(own), in_sizes)) return no_pair(*this, "was told other sizes");
    SHW_ASSIGN_OR_RETURN(const size_t total, total_of(sent));
    std::vector<std::byte> all(total);
    *moved = all_gather_v(call, in, all, sent);
    if (!moved->ok()) return {};
    std::span<const std::byte> rest = all;
    std::span<std::byte> room = out;
    for (size_t from = 0; from < world; ++from) {
      SHW_ASSIGN_OR_RETURN(const size_t begin, total_of(row(from).first(own)));
      room = copy_bytes(rest.subspan(begin, out_sizes[from]), room);
      rest = rest.subspan(sent[from]);
    }
    return {};
  });
}

}  // namespace shardwright::collective
