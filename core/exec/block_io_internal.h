// SPDX-License-Identifier: Apache-2.0
//
// BlockIo: what one call of reading does with its tasks, whoever orders them: the files that it has
// open, where the bytes of a task come from, the check of its blocks and their way to the sink.
// Thread-safe once it is made.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/exec/block_reader_internal.h"
#include "core/storage/storage.h"

namespace shardwright::exec::internal {

// What a call of reading is made with; everything outlives it.
struct ReadSetting {
  Runtime& runtime;
  const format::Location& location;
  const format::OpenedCheckpoint& opened;
  ReadRules rules;
  const CallContext& call;
  BlockSink& sink;
  Trace* trace = nullptr;
};

TaskRules task_rules_of(const ReadSetting& setting);

class BlockIo {
 public:
  explicit BlockIo(const ReadSetting& setting);

  const TaskRules& task_rules() const { return task_rules_; }
  bool reads_overlap() const { return concurrent_; }
  // Each file is opened with its first task and closed with the last of those that are expected;
  // none where what is handed on was read elsewhere.
  void expect(std::span<const BlockNeed> needs, std::span<const ReadTask> tasks);
  void task_done(const ReadTask& task);

  std::span<const BlockNeed> needs_of(const ReadTask& task) const {
    return needs_.subspan(task.first, task.last - task.first);
  }
  // Whether it reads what is made of files.
  bool is_derived(const ReadTask& task) const {
    return task.file == setting_.opened.derived_file();
  }
  // What must be known of the task's file before its bytes can be checked.
  Status prepare(const ReadTask& task) const;
  // Why a file that was not found is not there.
  Status explained(const ReadTask& task, Status status) const;
  Result<storage::StorageObject*> object(const ReadTask& task);
  // Whether nearly all of a task is to be had without the device. What cannot be asked is not.
  bool is_cached(const ReadTask& task);
  Status read(const ReadTask& task, std::span<std::byte> memory);
  // Of a task whose bytes came by a queue.
  Status completed(const ReadTask& task, Status status);
  // The sink's own memory for a task; empty when there is none.
  std::span<std::byte> landing_of(const ReadTask& task) const;
  // As many needs of the task from the step's first on as end within one block of it.
  void end_step(const ReadTask& task, ReadTask* step) const;

  // memory: the bytes of the task. checked: blocks were found whole, by another rank.
  Status hand_on(const ReadTask& task, std::span<const std::byte> memory, bool landed,
                 bool checked = false);
  void count_cached(uint64_t bytes) { bytes_cached_ += bytes; }
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_cached() const { return bytes_cached_; }

 private:
  // The open objects of one file, through the page cache and round it.
  struct Handles {
    std::mutex mutex;
    std::array<std::unique_ptr<storage::StorageObject>, 2> objects;
    std::atomic<int64_t> tasks_left{0};
  };
  Result<storage::StorageObject*> open(const ReadTask& task, bool direct);
  Status hand_on_block(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                       bool landed, bool checked);

  const ReadSetting setting_;
  const TaskRules task_rules_;
  bool check_digests_ = true;
  bool concurrent_ = false;
  bool asks_cache_ = false;
  std::span<const BlockNeed> needs_;
  std::vector<Handles> handles_;
  std::atomic<uint64_t> bytes_read_{0};
  std::atomic<uint64_t> bytes_cached_{0};
};

}  // namespace shardwright::exec::internal
