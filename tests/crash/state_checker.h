// SPDX-License-Identifier: Apache-2.0
//
// StateChecker: puts a tree onto a real file system and reads it as a host would, with the shipped
// library. What must hold is said as the invariants
//   I1, I2, I3  the newest committed checkpoint opens, with all its bytes and nothing else's
//   I4          opening changes nothing
//   I5          a following save succeeds, and gc leaves exactly the named files
//   I6          when nothing was committed, open says NOT_FOUND
//   I7          Megatron-core, which knows no journal, finds one of the checkpoints that may be
//               there, the one that it found before, or no marker; after a save what was saved
// One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <shardwright/shardwright.h>

#include "tests/crash/power_loss.h"

namespace shardwright::crash {

// What may be at the path: one of the numbers; nothing at all when may_be_missing.
struct Expected {
  std::vector<uint64_t> numbers;
  bool may_be_missing = true;
};

// What has become certain at the path while a log is followed. Numbers of saves ascend, and at most
// one save is in flight at a time.
class Progress {
 public:
  void follow(const RecordedCall& call);
  const Expected& expected() const { return expected_; }

 private:
  uint64_t begun_ = 0;
  Expected expected_;
};

// A new empty directory in memory (/dev/shm) where there is such a thing, else below TMPDIR or
// /tmp.
std::string make_fast_directory();

class StateChecker {
 public:
  // format: SHW_FORMAT_ of what is saved.
  explicit StateChecker(int32_t format = SHW_FORMAT_NATIVE);
  ~StateChecker();
  StateChecker(const StateChecker&) = delete;
  StateChecker& operator=(const StateChecker&) = delete;

  // What is wrong with a tree, "" = nothing. I5 is asked for with follow_up; it costs a save.
  std::string violation(const FileTree& tree, const std::string& checkpoint,
                        const Expected& expected, bool follow_up);
  // The same of what lies at a path already. *found receives the number that is there, 0 = none.
  std::string violation_at(const std::string& path, const Expected& expected, uint64_t* found);
  // I5 at a path; a save of this number is left there.
  std::string follow_up_violation(const std::string& path, uint64_t number);

 private:
  void place(const FileTree& tree);
  std::string violation_for_megatron(const std::string& path, const Expected& expected);
  void clear();

  const int32_t format_;
  shw_context* context_ = nullptr;
  std::string directory_;
  FileTree placed_;
  // What Megatron-core found last, and where: it stays there, behind a journal that names a newer
  // one, until a save gets as far as the marker.
  std::string megatrons_path_;
  uint64_t megatrons_number_ = 0;
};

}  // namespace shardwright::crash
