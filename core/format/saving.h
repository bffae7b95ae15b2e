// SPDX-License-Identifier: Apache-2.0
//
// What a format does in a save; the steps themselves are exec's (core/exec/commit.cc). A
// FormatWriter is the format's half on every rank: where a rank's bytes go and what stands behind
// them. A GenerationWriter is its half on the coordinator, one per save: what is made before ranks
// write, and the one object whose commit is the commit. FormatWriters are immutable, any thread; a
// GenerationWriter is thread-compatible but for check_written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/plan/local_plan.h"
#include "core/plan/save_plan.h"
#include "core/plan/wire/wire.h"
#include "core/state/state.h"
#include "core/storage/storage.h"

namespace shardwright::format {

inline constexpr std::string_view kLockName = ".lock";  // of fence keys

// What a generation keeps in storage, for removal: all below a prefix, and objects by their keys.
struct StoredParts {
  std::string generation;
  std::string prefix;  // "" = none
  std::vector<std::string> keys;
};
// Bytes that went. What cannot be removed does not stop it; the first failure is returned. Prefixes
// go without memory, where the storage can (Storage::remove_prefix).
Result<uint64_t> remove_parts(storage::Storage& storage, const StoredParts& parts);

// What is committed at a location now, as far as the next save must know. A checkpoint that is
// damaged exists without generation: a save may replace it, and nothing that it named is removed.
struct CurrentCheckpoint {
  bool exists = false;
  std::string generation;  // "" = damaged, or the format has none
  std::string version;     // of the object whose commit is the commit; empty = not offered
  bool damaged = false;
  // The object whose commit is the commit goes away when all is done, and is not there now.
  bool commits_anew = false;
  // Keys that go with it, of formats in which it says them one by one.
  std::vector<std::string> named_keys;
  std::vector<std::string> kept_generations;  // newest first

  bool names(std::string_view which) const;  // as its own generation or as one that is kept
};

// A generation that lies at a location, whether it is named or not.
struct GenerationInfo {
  std::string generation;
  bool named = false;
  int64_t modified_ns = 0;  // the newest of its objects
  uint64_t size_bytes = 0;
  std::vector<std::string> keys;  // to remove when the generation goes
};

// The generations of a place, from the objects that are theirs by their names.
class GenerationList {
 public:
  // current outlives the list.
  explicit GenerationList(const CurrentCheckpoint& current) : current_(current) {}
  void add(std::string_view generation, const storage::ListEntry& entry);
  // Ascending by id.
  std::vector<GenerationInfo> take();

 private:
  const CurrentCheckpoint& current_;
  std::map<std::string, GenerationInfo, std::less<>> found_;
};
// DATA_LOSS where the object whose commit is the commit is damaged: nobody can say what it names.
Status check_names_generation(const CurrentCheckpoint& current, std::string_view commit_key);

// What of a checkpoint goes with some of its entries.
struct EntryRemoval {
  struct Part {
    std::string name;
    uint64_t size_bytes = 0;
  };
  std::vector<Part> entries;  // as they are called in the index, ascending
  std::vector<Part> files;    // that nothing lies in any more, those of one that was cut off first
  bool was_cut_off = false;   // an earlier removal; it is finished before this one
};
using EntryNameRule = std::function<bool(std::string_view)>;

// What all parts of one save share.
struct SaveSettings {
  bool durable = true;
  bool digests = true;
  uint32_t file_mode = 0;
  int32_t keep_generations = 1;
  bool common_as_object = false;  // see exec's SaveOptions
  bool lists_digests = false;     // see exec's SaveOptions
  uint64_t max_shard_bytes = 0;   // of the payload of one file where ranks share files; 0 = default
  std::map<std::string, std::string> metadata;
  std::string writer;  // "shardwright 0.1.0"
};

// INVALID_ARGUMENT for a save that is to keep earlier generations; index: what names only one.
Status check_keeps_none(const SaveSettings& settings, std::string_view index);

// What one rank stores. local is the plan that the list was made from. All outlive it.
struct RankContents {
  const State& state;
  const plan::LocalPlan& local;
  const plan::WriteList& list;
  bool digests = true;
  // Of several files of a rank, each written by itself.
  uint32_t file_number = 0;
  std::string_view file_hint = "";  // what the name begins with
  // The SHA-256 of the own file is made while it is written.
  bool hashes_file = false;

  // Of an entry: in a description rank 0 stands for each rank in turn.
  int32_t owner(int32_t described) const { return described < 0 ? -1 : list.rank; }
};

// Whether an own file is written once, from its beginning to its end.
bool is_written_in_order(const storage::Storage& storage, const RankContents& contents);

// Where the bytes of an item go that do not lie together: runs of run_bytes at all combinations of
// the loops, the last one fastest.
struct Scatter {
  struct Loop {
    uint64_t count = 0;
    uint64_t stride_bytes = 0;
  };
  uint64_t run_bytes = 0;
  std::vector<Loop> loops;
};

// What stands right around an item of an own file and says its CRC-32: records of an archive.
struct Wrapping {
  std::vector<std::byte> front;
  std::vector<std::byte> behind;
  // Where in each the checksum goes, 4 bytes, little-endian. None is in front of what is written in
  // order.
  std::vector<uint32_t> front_checksums;
  std::vector<uint32_t> behind_checksums;
};

struct PlacedItem {
  static constexpr uint32_t kTogether = 0xFFFFFFFF;
  static constexpr uint32_t kBare = 0xFFFFFFFF;
  uint32_t item = 0;      // number in the list
  uint64_t position = 0;  // in the file, of its first byte; of one of kSlabChunkLimitBytes and more
                          // in an own file a multiple of kExtentAlignmentBytes
  uint64_t size_bytes = 0;
  uint32_t scatter = kTogether;  // number of its Scatter
  uint32_t wrapping = kBare;     // number of its Wrapping, in an own file
};

// What one rank writes into one file.
struct FileLayout {
  std::string key;
  // Whether the rank makes the file and has it for itself: what no item covers is zero. Else the
  // file is there, and the rank writes its items and nothing else.
  bool is_own = true;
  std::vector<std::byte> head;    // first bytes of an own file
  std::vector<PlacedItem> items;  // ascending position; those of no bytes with what follows them
  std::vector<Scatter> scatters;
  std::vector<Wrapping> wrappings;  // shared by items; of one file none overlap
  uint64_t data_bytes = 0;          // end of the last item and what is behind it; 0 without items
  uint64_t tail_bytes = 0;          // expected behind it, for preallocation
  std::string names_prefix;         // whose names the rank makes durable; "" = none

  // Of a placed item with what wraps it.
  uint64_t wrapped_begin(const PlacedItem& placed) const {
    if (placed.wrapping == PlacedItem::kBare) return placed.position;
    return placed.position - wrappings[placed.wrapping].front.size();
  }
  uint64_t wrapped_end(const PlacedItem& placed) const {
    const uint64_t end = placed.position + placed.size_bytes;
    if (placed.wrapping == PlacedItem::kBare) return end;
    return end + wrappings[placed.wrapping].behind.size();
  }
};

// The coordinator's half of one save.
class GenerationWriter {
 public:
  virtual ~GenerationWriter() = default;
  // Bytes that all ranks will write, about. INVALID_ARGUMENT when they cannot be counted.
  virtual Result<uint64_t> planned_bytes() const = 0;
  // Step 1: makes what ranks write into. Where somebody has used the generation id: ALREADY_EXISTS,
  // or what is there is used as far as it is what would be made. After another failure parts() may
  // lie in storage.
  enum class Existing : uint8_t { kRefuse, kGoOn };
  virtual Status make(std::string_view generation, Existing existing) = 0;
  // What make made, and what ranks add to it.
  virtual const StoredParts& parts() const = 0;
  // Step 4: what the rank reports is what lies in storage. DATA_LOSS; NOT_FOUND when the
  // coordinator cannot see it. Thread-safe.
  virtual Status check_written(const plan::WriteResult& result) const = 0;
  // Step 5 in memory: proves what will be written. results: of all ranks, in their order.
  virtual Status encode(std::span<const plan::WriteResult> results, int64_t created_unix_ns) = 0;
  // Step 5 in storage: the object whose commit is the commit, durable where that is wanted.
  virtual Result<std::unique_ptr<storage::StorageObject>> open_commit() = 0;
  // Of the checkpoint; after encode.
  virtual uint64_t file_count() const = 0;
  virtual uint64_t file_bytes() const = 0;
  // What nobody names any more once this save is committed.
  virtual std::vector<StoredParts> replaced_parts() const = 0;
  // What of the state the format says in another way, one sentence each; for reports. After encode.
  virtual std::vector<std::string> notes() const { return {}; }
};

class FormatWriter {
 public:
  virtual ~FormatWriter() = default;
  virtual std::string_view name() const = 0;
  // Whether blocks of what it stores have digests.
  virtual bool keeps_digests() const = 0;
  // Whether objects are part of what the coordinator plans (text in a header), so that their bytes
  // must lie in its state.
  virtual bool plans_object_bytes() const { return false; }
  // Whether a checkpoint can have a list of its files with the SHA-256 of each.
  virtual bool lists_digests() const { return false; }
  // Key of the object whose commit is the commit.
  virtual std::string commit_key(const Location& location) const = 0;
  // Key of an object that belongs to a generation beside its files, "" = the format has no place.
  virtual std::string journal_key(const Location& location, std::string_view generation) const = 0;
  // Key of the lock that keeps gc away from saves; "" = gc removes nothing that a save could need.
  virtual std::string fence_key(const Location& location) const = 0;
  // UNIMPLEMENTED for one of a newer version.
  virtual Result<CurrentCheckpoint> read_current(const Location& location) const = 0;
  // Whether saves at one place keep each other away: what follows their commit must not overlap.
  virtual bool saves_alone() const { return false; }
  // What is left to do after a commit, of this save or of one that was killed. Not before all of it
  // is done may what was replaced go. Can be tried again; under the lock of the place.
  virtual Status settle(const Location&) const { return {}; }
  // Takes entries away whose names the rule has, under the lock of the place and behind settle: the
  // index without them is in place, and durable, before files go. Without apply it only says what
  // would go. No entries: none has such a name. UNIMPLEMENTED of formats that do not.
  virtual Result<EntryRemoval> remove_entries(const Location& location, const EntryNameRule& goes,
                                              bool apply) const;
  // Finishes a removal of entries that was cut off; under the lock of the place, behind settle.
  virtual Status finish_removal(const Location&) const { return {}; }
  // DATA_LOSS when nobody can say which generation is named.
  virtual Result<std::vector<GenerationInfo>> list_generations(const Location& location) const = 0;
  // Begins a save on the coordinator that takes the place of `replaced`; nothing is written. state:
  // of the coordinator. Plan and state outlive the result. INVALID_ARGUMENT or
  // UNIMPLEMENTED naming what the format cannot hold.
  virtual Result<std::unique_ptr<GenerationWriter>> begin(
      const Location& location, const plan::GlobalSavePlan& plan, const State& state,
      SaveSettings settings, const CurrentCheckpoint& replaced) const = 0;
  // Where a rank's items go. Reads what the coordinator made where that says it.
  virtual Result<std::vector<FileLayout>> lay_out(const Location& location,
                                                  const RankContents& contents) const = 0;
  // What stands behind the items of an own file, from `position` on; digests: of the blocks of all
  // items, in the order of the list. Adds to the rank's result what the coordinator must know.
  virtual Result<std::vector<std::byte>> encode_tail(const RankContents& contents,
                                                     const FileLayout& layout, uint64_t position,
                                                     std::span<const Digest128> digests,
                                                     plan::WriteResult* result) const = 0;
};

}  // namespace shardwright::format
