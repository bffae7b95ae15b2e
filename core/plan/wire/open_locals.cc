// SPDX-License-Identifier: Apache-2.0
//
// Most ranks send the description of the rank before them, which costs a comparison and no more;
// columns of boxes are not copied. Ranks mostly cut their tensors into as many boxes by the same
// dimensions: those who do share the lists of one, which is what merging reads most.
#include "core/plan/wire/wire.h"

#include <cstring>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/integrity/digest.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"
#include "core/plan/wire/vectors_internal.h"

namespace shardwright::plan {
namespace {

// Whether the plan at this place of `count` may stand there; those before it may. World size 0 =
// not known.
Status check_position(RankPosition position, size_t index, size_t count) {
  const std::string rank = std::to_string(position.rank);
  if (std::cmp_not_equal(position.rank, index)) {
    // The plans before this one stand at their places.
    const bool doubled = position.rank >= 0 && std::cmp_less(position.rank, index);
    return invalid_argument(fmt::format("plan {} of {} is that of rank {}{}; plans are wanted in "
                                        "rank order, one per rank",
                                        index, count, position.rank,
                                        doubled ? " a second time" : ""))
        .with_detail("rank", rank)
        .with_detail("expected", std::to_string(index))
        .with_detail("found", rank);
  }
  if (position.world_size != 0 && std::cmp_not_equal(position.world_size, count)) {
    return invalid_argument(fmt::format("rank {} plans for {} ranks, but there are plans of {}",
                                        position.rank, position.world_size, count))
        .with_detail("rank", rank)
        .with_detail("expected", std::to_string(position.world_size))
        .with_detail("found", std::to_string(count));
  }
  return {};
}

class LocalOpener {
 public:
  explicit LocalOpener(size_t rank_count) : rank_count_(rank_count) {
    digests_.reserve(rank_count);
    parts_.reserve(rank_count);
  }

  Status add(std::span<const std::byte> buffer) {
    SHW_ASSIGN_OR_RETURN(internal::OpenedPlan opened, internal::open_plan(buffer));
    const auto* const found = std::get_if<const wire::LocalSave*>(&opened.body);
    if (found == nullptr) {
      return invalid_argument("the plan buffer holds no local save plan")
          .with_detail("expected", "local save plan");
    }
    const wire::LocalSave& body = **found;
    const std::span<const std::byte> description = internal::bytes_of_column(body.description());
    PartView part = internal::view_part(body.part(), &owned_);
    if (!opened.aligned.empty()) {
      // The view outlives this call, so the aligned copy is kept; moving it keeps its address.
      owned_.push_back(std::make_shared<const std::vector<std::byte>>(std::move(opened.aligned)));
    }
    if (part.world_size == 0) {
      if (part.rank < 0 || part.rank >= kMaxWorldSize)
        return data_loss(
            fmt::format("the local save plan is damaged: it is that of rank {}", part.rank));
      part.rank = static_cast<int32_t>(digests_.size());
    }
    SHW_RETURN_IF_ERROR(check_position({part.rank, part.world_size}, digests_.size(), rank_count_));
    const bool as_before = !parts_.empty() && same(description, last_);
    digests_.push_back(as_before ? digests_.back() : integrity::xxh3_128(description));
    if (part.description_digest != digests_.back())
      return data_loss("the local save plan is damaged: its part belongs to another description");
    if (as_before && same(std::as_bytes(part.lists), std::as_bytes(parts_.back().lists)))
      part.lists = parts_.back().lists;
    parts_.push_back(part);
    last_ = description;
    if (as_before || !known_.insert(to_hex(digests_.back())).second) return {};
    SHW_ASSIGN_OR_RETURN(Description decoded, decode<Description>(description));
    descriptions_.push_back(std::move(decoded));
    return {};
  }

  Result<RankPlans> take() && {
    if (digests_.empty()) return invalid_argument("there is no local plan to merge");
    return make_rank_plans(digests_, std::move(descriptions_), std::move(parts_),
                           std::move(owned_));
  }

 private:
  static bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
  }

  size_t rank_count_;
  std::span<const std::byte> last_;  // the description of the last rank
  std::vector<Digest128> digests_;   // one per rank
  std::unordered_set<std::string> known_;
  std::vector<Description> descriptions_;  // distinct, by their first rank
  std::vector<PartView> parts_;
  internal::Owned owned_;
};

}  // namespace

Result<RankPlans> open_local_saves(std::span<const std::span<const std::byte>> buffers) {
  LocalOpener opener(buffers.size());
  for (size_t rank = 0; rank < buffers.size(); ++rank) {
    Status status = opener.add(buffers[rank]);
    if (status.ok()) continue;
    return std::move(status)
        .with_detail("rank", std::to_string(rank))
        .annotated(fmt::format("read the plan of rank {}", rank));
  }
  return std::move(opener).take();
}

}  // namespace shardwright::plan
