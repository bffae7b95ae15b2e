// SPDX-License-Identifier: Apache-2.0
//
// One read of all parts, hashed where they land. Where the target has digests of its own they are
// checked as well.
#include "core/exec/read_back_internal.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/exec/block_reader_internal.h"

namespace shardwright::exec::internal {
namespace {

std::string_view name_of(const State& state, const plan::WriteItem& item) {
  return item.piece == plan::kObjectPiece ? std::string_view(state.objects()[item.entry].name)
                                          : state.tensors().name(item.entry);
}

// Where an item of the list went.
Result<format::StoredItem> stored_item(const Checkpoint& made, const State& state,
                                       const plan::WriteList& list, const plan::WriteItem& item) {
  const auto owner = [&list](EntryKind kind) {
    return kind == EntryKind::kRankLocal ? list.rank : -1;
  };
  if (item.piece == plan::kObjectPiece) {
    const ObjectEntry& object = state.objects()[item.entry];
    SHW_ASSIGN_OR_RETURN(const size_t number, made.find_object(object.name, owner(object.kind)));
    return format::StoredItem{format::StoredItem::Kind::kObject, number};
  }
  const TensorRef tensor = state.tensors()[item.entry];
  SHW_ASSIGN_OR_RETURN(const size_t number, made.find_tensor(tensor.name, owner(tensor.kind)));
  const Box box = tensor.pieces[item.piece].box;
  const std::vector<uint64_t> chunks = made.index().chunks_meeting(number, box);
  if (chunks.size() != 1 || made.catalog().chunk_box(chunks[0]) != box) {
    return internal_error(
        fmt::format("box {} of tensor '{}' was written in one chunk and is stored "
                    "in {}",
                    box_text(box), escape_text(tensor.name), chunks.size()));
  }
  return format::StoredItem{format::StoredItem::Kind::kChunk, chunks[0]};
}

class ReadBack final : public BlockSink {
 public:
  ReadBack(const Checkpoint& made, const State& state, const plan::WriteList& list,
           std::span<const TakenPart> parts)
      : made_(made), state_(state), list_(list), parts_(parts) {}

  Status run(Runtime& runtime, const CallContext& call) {
    SHW_RETURN_IF_ERROR(find_items());
    SHW_RETURN_IF_ERROR(prepare_items(
        runtime, made_.opened(), parts_.size(), [this](size_t i) { return items_[i]; },
        call.control));
    SHW_ASSIGN_OR_RETURN(std::vector<BlockNeed> needs, make_needs());
    const CallContext quiet{call.control, nullptr, {}};  // progress counts what is written
    return BlockReader(runtime, made_.location(), made_.opened())
        .run(std::move(needs), kFromDevice, quiet, *this)
        .status();
  }

  Status consume(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                 bool) override {
    const Digest128 found = integrity::xxh3_128(bytes);
    for (const BlockNeed& need : needs) {
      const TakenPart& part = parts_[need.user];
      if (found == part.digest) continue;
      const std::string_view name = name_of(state_, list_.items[part.item]);
      return data_loss(fmt::format("'{}' differs from what was read from the source, in {} bytes "
                                   "from byte {} on",
                                   escape_text(name), part.size_bytes, part.begin))
          .with_detail("tensor", name)
          .with_detail("expected", to_hex(part.digest))
          .with_detail("found", to_hex(found));
    }
    return {};
  }

 private:
  // Of each part.
  Status find_items() {
    items_.reserve(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (i > 0 && parts_[i - 1].item == parts_[i].item) {
        items_.push_back(items_.back());
        continue;
      }
      SHW_ASSIGN_OR_RETURN(const format::StoredItem item,
                           stored_item(made_, state_, list_, list_.items[parts_[i].item]));
      items_.push_back(item);
    }
    return {};
  }

  Result<std::vector<BlockNeed>> make_needs() const {
    std::vector<BlockNeed> needs;
    needs.reserve(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      const bool is_object = items_[i].kind == format::StoredItem::Kind::kObject;
      const format::OpenedCheckpoint& opened = made_.opened();
      SHW_ASSIGN_OR_RETURN(const format::Extent extent,
                           is_object ? opened.object_extent(items_[i].number)
                                     : opened.chunk_extent(items_[i].number));
      BlockNeed need{extent.offset + parts_[i].begin,
                     items_[i].number,
                     parts_[i].begin,
                     extent.file,
                     parts_[i].size_bytes,
                     0};
      if (is_object) need.kind = NeedKind::kObject;
      if (!checked_cast(i, &need.user))
        return resource_exhausted("parts", "more than 2^32 parts in one file to read back");
      needs.push_back(need);
    }
    return needs;
  }

  const Checkpoint& made_;
  const State& state_;
  const plan::WriteList& list_;
  const std::span<const TakenPart> parts_;
  std::vector<format::StoredItem> items_;
};

}  // namespace

void TakenParts::add(std::span<const WantedRun> runs) {
  std::vector<TakenPart> taken;
  for (const WantedRun& run : runs) {
    for (uint64_t done = 0; done < run.to.size();) {
      const uint64_t begin = run.begin + done;
      const uint64_t size =
          std::min(kDigestBlockBytes - begin % kDigestBlockBytes, run.to.size() - done);
      const auto bytes = run.to.subspan(static_cast<size_t>(done), static_cast<size_t>(size));
      taken.push_back({run.item, static_cast<uint32_t>(size), begin, integrity::xxh3_128(bytes)});
      done += size;
    }
  }
  const MutexLock lock(mutex_);
  parts_.insert(parts_.end(), taken.begin(), taken.end());
}

std::vector<TakenPart> TakenParts::take() {
  const MutexLock lock(mutex_);
  std::ranges::sort(parts_, [](const TakenPart& a, const TakenPart& b) {
    return std::tie(a.item, a.begin, b.size_bytes) < std::tie(b.item, b.begin, a.size_bytes);
  });
  std::vector<TakenPart> kept;
  kept.reserve(parts_.size());
  for (const TakenPart& part : parts_) {
    const bool inside = !kept.empty() && kept.back().item == part.item &&
                        part.begin + part.size_bytes <= kept.back().begin + kept.back().size_bytes;
    if (!inside) kept.push_back(part);
  }
  parts_ = {};
  return kept;
}

Status read_back(Runtime& runtime, const Checkpoint& made, const State& state,
                 const plan::WriteList& list, std::span<const TakenPart> parts,
                 const CallContext& call) {
  return ReadBack(made, state, list, parts).run(runtime, call);
}

}  // namespace shardwright::exec::internal
