// SPDX-License-Identifier: Apache-2.0
//
// Value trees: nested values of the common state, taken apart into entries and put together again.
// A checkpoint has an entry for each value that is no dict or list, with its path; what is neither
// plain JSON is a leaf that names the stored object. Values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/exec/checkpoint.h"
#include "core/exec/checkpoint_view.h"
#include "core/state/path.h"

namespace shardwright::reshard {

struct Value {
  enum class Kind : uint8_t { kLeaf, kDict, kList };
  Kind kind = Kind::kLeaf;
  std::string json = {};                        // of a leaf: JSON text, or bytes of another type
  std::string type = {};                        // content type of these bytes; empty: JSON
  size_t object = exec::ViewObject::kOwnBytes;  // a leaf that is stored as it is
  std::vector<std::pair<PathPart, Value>> members = {};  // in their order

  static Value leaf(std::string json);
  static Value dict() { return {Kind::kDict}; }
  static Value list() { return {Kind::kList}; }
  const Value* find(std::string_view key) const;  // text key of a dict; null: none
  Value* find(std::string_view key);
  void set(std::string_view key, Value value);  // of a dict: replaced, or behind the others
  void set(int64_t key, Value value);           // integer key of a dict
  void append(Value value);                     // to a list
  friend bool operator==(const Value&, const Value&) = default;
};

// The value whose entries have paths that begin with these parts; a leaf without anything where
// there are none. INVALID_ARGUMENT for paths that are no paths.
Result<Value> value_below(const exec::Checkpoint& source, const std::vector<PathPart>& prefix);
// Of a pickle that is read as data: a leaf of its own for each value that is no dict or list.
// DATA_LOSS for one that is damaged; UNIMPLEMENTED for values that cannot be stored by themselves,
// such as tensors.
Result<Value> value_of_pickle(std::span<const std::byte> bytes);
// Of JSON text, tagged forms included ({"$map": ...}); INVALID_ARGUMENT for text that is none.
Result<Value> value_of_json(std::string_view text);
// The same the other way round. UNIMPLEMENTED for leaves that are no JSON.
Result<std::string> json_of_value(const Value& value);
// An entry for each leaf below the path.
void add_entries(const Value& value, const std::vector<PathPart>& path,
                 std::vector<exec::ViewObject>* objects);

}  // namespace shardwright::reshard
