// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/order_guard.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/integrity/digest.h"

namespace shardwright::hsdp {
namespace {

// Records that are kept to name a difference; later ones are in the digest only.
constexpr size_t kMaxRecords = 16384;

// What ranks exchange at each comparison.
struct Summary {
  Digest128 digest{};
  uint64_t record_count = 0;
  friend bool operator==(const Summary&, const Summary&) = default;
};
static_assert(sizeof(Summary) == 24);

template <typename T>
Status gather_from_all(collective::Communicator& communicator, collective::CommunicatorCall* call,
                       std::span<const T> mine, std::span<T> all) {
  call->count = mine.size_bytes();
  call->dtype = DType::kUint8;
  SHW_ASSIGN_OR_RETURN(
      const collective::WorkPtr work,
      communicator.all_gather(*call, std::as_bytes(mine), std::as_writable_bytes(all)));
  ++call->sequence;
  const Result<bool> ended = work->wait(-1);
  return ended.status();
}

}  // namespace

void OrderGuard::record(collective::OperationKind kind, UnitId unit, uint64_t bytes) {
  if (!active_) return;
  const Record added{static_cast<uint64_t>(kind) + 1, unit, bytes};
  std::array<std::byte, sizeof(Digest128) + sizeof(Record)> rolled;
  copy_bytes(std::as_bytes(std::span(&added, 1)), copy_bytes(digest_, rolled));
  digest_ = integrity::xxh3_128(rolled);
  ++record_count_;
  if (records_.size() < kMaxRecords) records_.push_back(added);
}

Status OrderGuard::compare(collective::Communicator& communicator,
                           collective::CommunicatorCall* call, const Names& names) {
  const size_t world = static_cast<size_t>(communicator.size());
  const Summary mine{digest_, record_count_};
  std::vector<Summary> all(world, mine);
  SHW_RETURN_IF_ERROR(gather_from_all(communicator, call, std::span(&mine, 1), std::span(all)));
  const bool equal = std::ranges::all_of(all, [&](const Summary& each) { return each == all[0]; });
  if (!equal) {
    uint64_t longest = 0;
    for (const Summary& each : all) longest = std::max(longest, each.record_count);
    const size_t count = static_cast<size_t>(std::min<uint64_t>(longest, kMaxRecords));
    Records padded = records_;
    padded.resize(count);
    Records gathered(count * world);
    SHW_RETURN_IF_ERROR(
        gather_from_all(communicator, call, std::span<const Record>(padded), std::span(gathered)));
    std::vector<Records> ranks;
    for (size_t rank = 0; rank < world; ++rank) {
      const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(rank * count);
      ranks.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    return first_difference(ranks, names);
  }
  records_.clear();
  record_count_ = 0;
  return {};
}

Status OrderGuard::first_difference(const std::vector<Records>& ranks, const Names& names) const {
  const auto text = [&](const Record& record) {
    if (record.kind == 0) return std::string("nothing");
    return fmt::format(
        "{} of unit '{}' ({} bytes)",
        collective::operation_name(static_cast<collective::OperationKind>(record.kind - 1)),
        names.unit(record.unit), record.bytes);
  };
  for (size_t position = 0; position < ranks[0].size(); ++position) {
    for (size_t rank = 1; rank < ranks.size(); ++rank) {
      const Record& expected = ranks[0][position];
      const Record& found = ranks[rank][position];
      if (expected == found) continue;
      const int32_t first_rank = names.rank(0);
      const int32_t other_rank = names.rank(static_cast<int32_t>(rank));
      return aborted(fmt::format(
                         "ranks are out of step: operation {} of this step is {} on rank {} and {} "
                         "on rank {}; all ranks must run the units in the same order",
                         position, text(expected), first_rank, text(found), other_rank))
          .with_detail("expected", text(expected))
          .with_detail("found", text(found))
          .with_detail("sequence", fmt::to_string(position))
          .with_detail("rank", fmt::to_string(other_rank));
    }
  }
  return aborted(fmt::format("ranks are out of step: they differ after operation {} of this step",
                             ranks[0].size()));
}

}  // namespace shardwright::hsdp
