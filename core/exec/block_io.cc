// SPDX-License-Identifier: Apache-2.0
#include "core/exec/block_io_internal.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace shardwright::exec::internal {
namespace {

bool same_block(const BlockNeed& a, const BlockNeed& b) {
  return a.offset == b.offset && a.length == b.length && a.item == b.item && a.kind == b.kind;
}

// A short end of a file that the manifest names as longer is damage.
Status as_damage(Status status, const format::FileInfo& file, const ReadTask& task) {
  if (status.ok() || status.code() != StatusCode::kOutOfRange) return status;
  return data_loss(fmt::format("file {} ends inside the {} bytes at {}; it was cut", file.key,
                               task.length, task.offset))
      .with_detail("file", file.key)
      .with_detail("offset", std::to_string(task.offset))
      .with_detail("length", std::to_string(task.length));
}

}  // namespace

TaskRules task_rules_of(const ReadSetting& setting) {
  const storage::Storage& store = *setting.location.storage;
  TaskRules rules;
  rules.direct_offered =
      storage::offers(store, storage::kDirectIo) && setting.rules.path != ReadPath::kBuffered;
  rules.alignment = std::max<uint64_t>(store.alignment(), 1);
  rules.files = setting.opened.files();
  return rules;
}

BlockIo::BlockIo(const ReadSetting& setting)
    : setting_(setting), task_rules_(task_rules_of(setting)) {
  const storage::Storage& store = *setting.location.storage;
  const ReadRules& rules = setting.rules;
  check_digests_ = rules.verify == VerifyRule::kOnRead && setting.opened.digest_block_bytes() > 0;
  concurrent_ = storage::offers(store, storage::kConcurrentRead);
  asks_cache_ = storage::offers(store, storage::kDirectIo) && rules.path == ReadPath::kAuto;
}

void BlockIo::expect(std::span<const BlockNeed> needs, std::span<const ReadTask> tasks) {
  needs_ = needs;
  handles_ = std::vector<Handles>(tasks.empty() ? 0 : tasks.back().handle + size_t{1});
  for (const ReadTask& task : tasks) ++handles_[task.handle].tasks_left;
}

void BlockIo::task_done(const ReadTask& task) {
  Handles& handles = handles_[task.handle];
  if (--handles.tasks_left > 0) return;
  const std::lock_guard lock(handles.mutex);
  for (auto& object : handles.objects)
    object.reset();  // a read-only object has nothing to report on close
}

Result<storage::StorageObject*> BlockIo::open(const ReadTask& task, bool direct) {
  Handles& handles = handles_[task.handle];
  const std::lock_guard lock(handles.mutex);
  std::unique_ptr<storage::StorageObject>& object = handles.objects[direct ? 1 : 0];
  if (object == nullptr && is_derived(task)) {
    SHW_ASSIGN_OR_RETURN(object, setting_.opened.open_derived());
  } else if (object == nullptr) {
    storage::OpenOptions options;
    options.direct = direct;
    const format::FileInfo& file = setting_.opened.files()[task.file];
    SHW_ASSIGN_OR_RETURN(object, setting_.location.storage->open(
                                     format::stored_key(setting_.location, file), options));
  }
  return object.get();
}

Status BlockIo::prepare(const ReadTask& task) const {
  return is_derived(task) ? Status() : setting_.opened.prepare_file(task.file);
}

Status BlockIo::explained(const ReadTask& task, Status status) const {
  if (status.code() != StatusCode::kNotFound || is_derived(task)) return status;
  return setting_.opened.explain_missing(task.file);
}

Result<storage::StorageObject*> BlockIo::object(const ReadTask& task) {
  return open(task, task.direct);
}

bool BlockIo::is_cached(const ReadTask& task) {
  if (!asks_cache_ || is_derived(task)) return false;
  const auto object = open(task, false);
  if (!object.ok()) return false;  // the read fails, too, and says why
  return (*object)->cached_bytes(task.offset, task.length) * 10 >= task.length * kCachedTenths;
}

// One at a time where the storage wants that.
Status BlockIo::read(const ReadTask& task, std::span<std::byte> memory) {
  const Trace::Span span(setting_.trace, "read");
  SHW_ASSIGN_OR_RETURN(storage::StorageObject* const object, object(task));
  std::unique_lock lock(handles_[task.handle].mutex, std::defer_lock);
  if (!concurrent_) lock.lock();
  return completed(task, object->read_at(task.offset, memory));
}

Status BlockIo::completed(const ReadTask& task, Status status) {
  // What is read of a derived file names the file that it is made of.
  if (!is_derived(task))
    status = as_damage(std::move(status), setting_.opened.files()[task.file], task);
  if (status.ok()) bytes_read_ += task.length;
  return status;
}

std::span<std::byte> BlockIo::landing_of(const ReadTask& task) const {
  const std::span<std::byte> memory = setting_.sink.destination(needs_of(task));
  if (memory.size() != task.length) return {};
  const uint64_t alignment = task_rules_.alignment;
  const bool aligned = reinterpret_cast<uintptr_t>(memory.data()) % alignment == 0 &&
                       task.offset % alignment == 0 && task.length % alignment == 0;
  return task.direct && !aligned ? std::span<std::byte>() : memory;
}

void BlockIo::end_step(const ReadTask& task, ReadTask* step) const {
  step->direct = false;
  step->offset = needs_[step->first].offset;
  step->length = 0;
  for (step->last = step->first; step->last < task.last; ++step->last) {
    const BlockNeed& need = needs_[step->last];
    const uint64_t length = std::max(step->length, need.offset + need.length - step->offset);
    if (step->last > step->first && length > kDigestBlockBytes) break;
    step->length = length;
  }
}

Status BlockIo::hand_on(const ReadTask& task, std::span<const std::byte> memory, bool landed,
                        bool checked) {
  const Trace::Span span(setting_.trace, "check and copy");
  const std::span<const BlockNeed> needs = needs_of(task);
  for (size_t first = 0; first < needs.size();) {
    size_t last = first + 1;
    while (last < needs.size() && same_block(needs[first], needs[last])) ++last;
    const auto bytes = memory.subspan(needs[first].offset - task.offset, needs[first].length);
    SHW_RETURN_IF_ERROR(hand_on_block(needs.subspan(first, last - first), bytes, landed, checked));
    first = last;
  }
  return {};
}

Status BlockIo::hand_on_block(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                              bool landed, bool checked) {
  const BlockNeed& need = needs.front();
  const format::OpenedCheckpoint& opened = setting_.opened;
  Status status;
  if (check_digests_ && !checked && need.kind == NeedKind::kChunk) {
    status = opened.check_chunk_block(need.item, need.begin / block_bytes_of(opened), bytes);
  } else if (check_digests_ && !checked && need.kind == NeedKind::kObject) {
    status = opened.check_object_block(need.item, need.begin / block_bytes_of(opened), bytes);
  }
  if (status.ok()) return setting_.sink.consume(needs, bytes, landed);
  return setting_.sink.failed(need, std::move(status));
}

}  // namespace shardwright::exec::internal
