// SPDX-License-Identifier: Apache-2.0
//
// State: the ordered entries (tensor shards and byte objects) that one rank holds, as flat columns.
// Entries are added in bulk, checked once, then read by planner and pipelines. A failed add leaves
// the state as it was. Thread-compatible; const calls may run together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/layout/layout.h"
#include "core/state/name_index.h"
#include "core/tensor/strided_copy.h"
#include "core/tensor/tensor_view.h"

namespace shardwright {

// Who holds an entry. kAuto: replicated for plain tensors and objects, sharded for entries with
// boxes or a layout.
enum class EntryKind : uint8_t { kAuto = 0, kReplicated = 1, kSharded = 2, kRankLocal = 3 };
std::string_view entry_kind_name(EntryKind kind);  // "replicated", "sharded", "rank_local", "auto"

struct TensorEntry {
  std::string name;
  std::string path;  // nested path text; empty = the flat name is the path
  EntryKind kind = EntryKind::kAuto;
  TensorView local;  // memory of this rank; data may be null when the rank holds no element
  Dims global_shape;
  std::vector<Piece>
      pieces;  // boxes inside global_shape and their place in the local tensor; may be empty
};

struct ObjectEntry {
  std::string name;
  std::string path;
  EntryKind kind = EntryKind::kAuto;
  std::string content_type;  // "application/json", "application/octet-stream",
                             // "application/python-pickle", ...
  std::vector<std::byte> bytes;
};

class State {
 public:
  // Adds all or none. ALREADY_EXISTS for a name that is there (with both paths), INVALID_ARGUMENT
  // for invalid UTF-8, a name too long, pieces that leave the global shape or the local tensor, a
  // path whose join is not the name; UNIMPLEMENTED for a sub-byte piece that does not begin and end
  // on whole bytes; RESOURCE_EXHAUSTED for an object above kMaxObjectBytes. A name belongs to one
  // tensor or one object. Paths are kept in their canonical text. A piece occupies a box of the
  // local tensor: when there is one piece whose sizes equal the local shape it may be strided;
  // otherwise the local tensor must be contiguous and the piece is the row-major run at its offset.
  Status add_tensors(std::vector<TensorEntry> entries);
  Status add_objects(std::vector<ObjectEntry> entries);
  // Kept until the state goes: called once with the state's end (DLPack deleters, host buffers).
  void add_keepalive(std::shared_ptr<void> owner);

  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  const std::vector<ObjectEntry>& objects() const { return objects_; }
  // Index of the entry, or nullopt.
  std::optional<size_t> find_tensor(std::string_view name) const;
  std::optional<size_t> find_object(std::string_view name) const;
  // A load stores the bytes of object index here (exclusive).
  void replace_object(size_t index, std::string content_type, std::vector<std::byte> bytes);

  // Window of the memory of piece p of tensor t, shaped like the piece's box.
  Result<StridedWindow> piece_window(size_t tensor, size_t piece) const;

 private:
  std::vector<TensorEntry> tensors_;
  std::vector<ObjectEntry> objects_;
  NameIndex tensor_index_;
  NameIndex object_index_;
  std::vector<std::shared_ptr<void>> keepalive_;  // co-owned with whoever handed the memory in
};

// The view of a whole plain tensor: one piece that covers global_shape = local.shape.
TensorEntry plain_tensor_entry(std::string name, TensorView local);

}  // namespace shardwright
