// SPDX-License-Identifier: Apache-2.0
//
// Most ranks send a description that was seen already, which costs its digest and no more.
#include "core/plan/describe/open_symbolic.h"

#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/describe/gather_descriptions.h"
#include "core/plan/digest.h"
#include "core/plan/rank_position.h"
#include "core/plan/wire/open_each_internal.h"
#include "core/plan/wire/symbolic_local_view.h"

namespace shardwright::plan {
namespace {

class SymbolicOpener {
 public:
  explicit SymbolicOpener(size_t rank_count) : rank_count_(rank_count) {}

  Status add(std::span<const std::byte> buffer) {
    SHW_ASSIGN_OR_RETURN(const SymbolicLocalView plan, view_symbolic_local(buffer));
    SHW_ASSIGN_OR_RETURN(SymbolicPart part, decode_symbolic_part(plan.part));
    SHW_RETURN_IF_ERROR(check_position({part.rank, part.world_size}, digests_.size(), rank_count_));
    digests_.push_back(content_digest(plan.description));
    if (part.description_digest != digests_.back())
      return invalid_argument("its part belongs to another description");
    parts_.push_back(std::move(part));
    if (!known_.insert(to_hex(digests_.back())).second) return {};
    SHW_ASSIGN_OR_RETURN(SymbolicDescription description, decode_symbolic_save(plan.description));
    descriptions_.push_back(std::move(description));
    return {};
  }

  Result<RankDescriptions> take() {
    return make_rank_descriptions(digests_, std::move(descriptions_), std::move(parts_));
  }

 private:
  size_t rank_count_;
  std::vector<Digest128> digests_;  // one per rank
  std::unordered_set<std::string> known_;
  std::vector<SymbolicDescription> descriptions_;  // distinct, by their first rank
  std::vector<SymbolicPart> parts_;
};

}  // namespace

Result<RankDescriptions> open_symbolic_locals(std::span<const std::span<const std::byte>> buffers) {
  SymbolicOpener opener(buffers.size());
  SHW_RETURN_IF_ERROR(internal::open_each(buffers, &opener));
  return opener.take();
}

}  // namespace shardwright::plan
