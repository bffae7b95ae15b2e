// SPDX-License-Identifier: Apache-2.0
//
// A value of a pickle once more, as a pickle of its own: as it is, or without what is not known.
// Values may be shared and hold themselves, so what is written is bounded by its bytes and its
// depth; every container gets a place in the memo, so that shared ones stay shared. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/format/archive/pickle_data.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_writer.h"

namespace shardwright::format::archive {

struct PickleCopyRules {
  PickleProtocol protocol = PickleProtocol::k4;
  uint64_t budget_bytes = UINT64_MAX;
  std::span<const PickleClass> vocabulary = {};  // that the data was read with
  bool newer_names = true;                       // of modules that Python 2 called otherwise
  bool persistent_ids = false;                   // written, else they cannot be
  // What may stand in the copy; everything else is None there. Empty: all may.
  std::span<const PickleClass> known = {};
  // Pairs of dicts that are left out: those whose key is one of the names, or an object whose state
  // has it as "fqn". depth: of dicts so many containers inside of the value; kAnyDepth = of all.
  static constexpr int kAnyDepth = -1;
  struct LeftOut {
    const std::set<std::string, std::less<>>& names;  // outlives the copy
    int depth = kAnyDepth;
  };
  std::span<const LeftOut> left_out = {};  // outlives the copy
  // Integers that dicts have under these text keys, and what they are in the copy. Null: none.
  // Outlives the copy.
  const std::map<std::string, int64_t, std::less<>>* numbers = nullptr;
};

struct PickleCopy {
  bool is_whole = false;  // else the value cannot be written, or is more than the budget
  std::string bytes;
  uint64_t replaced = 0;  // values that are None
};

PickleCopy copy_pickle(const PickleData& data, PickleRef value, const PickleCopyRules& rules);
// The same as the next value of a pickle that is being written, of the protocol of that; false
// where it cannot be written, and then the writer is of no more use.
bool copy_pickle_into(const PickleData& data, PickleRef value, const PickleCopyRules& rules,
                      PickleWriter* writer);

// The bytes of _codecs.encode(text, "latin1"), by which pickles up to protocol 2 say them; nullopt
// for any other value. The data was read with torch_vocabulary().
std::optional<std::string> encoded_bytes(const PickleData& data, PickleRef value);

}  // namespace shardwright::format::archive
