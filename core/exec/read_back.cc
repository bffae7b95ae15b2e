// SPDX-License-Identifier: Apache-2.0
#include "core/exec/read_back_internal.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/exec/batches_internal.h"
#include "core/exec/checkpoint_source_internal.h"
#include "core/exec/parallel_internal.h"

namespace shardwright::exec::internal {
namespace {

constexpr uint64_t kMostBatchBlocks = 4;

// Numbers in the checkpoint of the entries of a state.
Result<SourceEntries> entries_in(const Checkpoint& made, const State& state,
                                 const plan::WriteList& list, std::span<const TakenRun> runs) {
  SourceEntries entries;
  const auto owner = [&list](EntryKind kind) {
    return kind == EntryKind::kRankLocal ? list.rank : -1;
  };
  for (const TensorRef tensor : state.tensors()) {
    SHW_ASSIGN_OR_RETURN(const size_t number, made.find_tensor(tensor.name, owner(tensor.kind)));
    entries.tensors.push_back(number);
  }
  entries.objects.resize(state.objects().size());
  for (const TakenRun& run : runs) {  // objects without runs became text of the checkpoint
    const plan::WriteItem& item = list.items[run.item];
    if (item.piece != plan::kObjectPiece) continue;
    const ObjectEntry& object = state.objects()[item.entry];
    SHW_ASSIGN_OR_RETURN(entries.objects[item.entry],
                         made.find_object(object.name, owner(object.kind)));
  }
  return entries;
}

std::string_view name_of(const State& state, const plan::WriteItem& item) {
  return item.piece == plan::kObjectPiece ? std::string_view(state.objects()[item.entry].name)
                                          : state.tensors().name(item.entry);
}

// Several runs, which are at most a block each, so that their reads overlap; all workers at once
// fit the staging memory.
uint64_t batch_bytes_of(Runtime& runtime) {
  const auto workers = static_cast<uint64_t>(runtime.pool().thread_count()) + 1;
  const uint64_t blocks = runtime.staging().budget_bytes() / workers / kWriteBlockBytes;
  return std::clamp<uint64_t>(blocks, 1, kMostBatchBlocks) * kWriteBlockBytes;
}

}  // namespace

void TakenRuns::add(std::span<const WantedRun> runs) {
  std::vector<TakenRun> taken;
  taken.reserve(runs.size());
  for (const WantedRun& run : runs)
    taken.push_back({run.item, run.begin, run.to.size(), integrity::xxh3_128(run.to)});
  const MutexLock lock(mutex_);
  runs_.insert(runs_.end(), taken.begin(), taken.end());
}

std::vector<TakenRun> TakenRuns::take() {
  const MutexLock lock(mutex_);
  const auto place = [](const TakenRun& run) {
    return std::tuple(run.item, run.begin, run.size_bytes);
  };
  std::ranges::sort(runs_, {}, place);
  const auto repeated = std::ranges::unique(runs_, {}, place);
  runs_.erase(repeated.begin(), repeated.end());
  return std::move(runs_);
}

Status read_back(Runtime& comparing, const Checkpoint& made, const State& state,
                 const plan::WriteList& list, std::span<const TakenRun> runs,
                 const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(const SourceEntries entries, entries_in(made, state, list, runs));
  CheckpointSource source(made, state, entries, list, call.control);
  const uint64_t batch_bytes = batch_bytes_of(comparing);
  const std::vector<size_t> begins =
      batch_begins(runs, batch_bytes, [](const TakenRun& run) { return run.size_bytes; });
  return run_each(comparing.pool(), begins.size() - 1, call.control, [&](size_t batch) -> Status {
    const auto mine = runs.subspan(begins[batch], begins[batch + 1] - begins[batch]);
    // Always as much, so that memory is used again: pages that are new cost more than the read.
    SHW_ASSIGN_OR_RETURN(const StagingBuffer block,
                         comparing.staging().acquire(batch_bytes, call.control));
    std::vector<WantedRun> wanted;
    uint64_t place = 0;
    for (const TakenRun& run : mine) {
      wanted.push_back(
          {run.item, run.begin,
           block.bytes().subspan(static_cast<size_t>(place), static_cast<size_t>(run.size_bytes))});
      place += run.size_bytes;
    }
    SHW_RETURN_IF_ERROR(source.read(wanted));
    for (size_t i = 0; i < mine.size(); ++i) {
      const Digest128 found = integrity::xxh3_128(wanted[i].to);
      if (found == mine[i].digest) continue;
      const std::string_view name = name_of(state, list.items[mine[i].item]);
      return data_loss(fmt::format("'{}' differs from what was read from the source, in {} bytes "
                                   "from byte {} on",
                                   escape_text(name), mine[i].size_bytes, mine[i].begin))
          .with_detail("tensor", name)
          .with_detail("expected", to_hex(mine[i].digest))
          .with_detail("found", to_hex(found));
    }
    return {};
  });
}

}  // namespace shardwright::exec::internal
