// SPDX-License-Identifier: Apache-2.0
#include "core/exec/write_alone.h"

#include <utility>

#include "core/exec/rank_file_writer_internal.h"
#include "core/plan/describe/describe_state.h"

namespace shardwright::exec {
namespace {

Result<std::vector<plan::WriteItem>> all_items(const State& state) {
  std::vector<plan::WriteItem> items;
  for (uint32_t t = 0; t < state.tensors().size(); ++t) {
    const TensorRef entry = state.tensors()[t];
    for (uint32_t p = 0; p < entry.pieces.size(); ++p) {
      SHW_ASSIGN_OR_RETURN(
          const uint64_t bytes,
          dtype_packed_bytes(entry.local.dtype, element_count_of(entry.pieces.sizes(p))));
      items.push_back({t, p, bytes});
    }
  }
  for (uint32_t o = 0; o < state.objects().size(); ++o)
    items.push_back({o, plan::kObjectPiece, state.objects()[o].size_bytes()});
  return items;
}

}  // namespace

Result<plan::WriteResult> write_alone(Runtime& runtime, std::shared_ptr<const State> state,
                                      const FileOfRank& file, const format::Location& location,
                                      const SaveOptions& options, const CallContext& call) {
  SHW_RETURN_IF_ERROR(check_options(options));
  SHW_ASSIGN_OR_RETURN(const format::FormatWriter* const format,
                       runtime.formats().writer(options.format));
  SHW_ASSIGN_OR_RETURN(const plan::LocalPlan local,
                       plan::describe_state(*state, options.rules, {0, 1}, {}, ""));
  plan::WriteList list;
  list.rank = file.rank;
  list.world_size = file.rank + 1;
  list.generation = file.generation;
  SHW_ASSIGN_OR_RETURN(list.items, all_items(*state));
  const format::RankContents contents{
      *state, local, list, options.digests && format->keeps_digests(), file.number, file.hint};
  return internal::write_rank_files({runtime, *format, contents, options, location, call});
}

}  // namespace shardwright::exec
