// SPDX-License-Identifier: Apache-2.0
//
// State: the ordered entries (tensor shards and byte objects) that one rank holds. Tensors lie in
// flat columns. Entries are added in bulk, checked once, then read by planner and pipelines. A
// failed add leaves the state as it was. Thread-compatible; const calls may run together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash_index.h"
#include "core/base/result.h"
#include "core/state/tensor_columns.h"
#include "core/tensor/strided_window.h"
#include "core/tensor/window_access.h"

namespace shardwright {

struct ObjectEntry {
  std::string name;
  std::string path;
  EntryKind kind = EntryKind::kAuto;
  std::string content_type;  // "application/json", "application/octet-stream",
                             // "application/python-pickle", ...
  std::vector<std::byte> bytes;
  uint64_t bytes_elsewhere =
      0;  // instead of bytes: so many, which a save takes from another source

  bool replica = false;  // another rank saves it; loads fill it

  uint64_t size_bytes() const { return bytes.size() + bytes_elsewhere; }
};

// Memory that is zero after each load into its state.
struct ZeroedMemory {
  std::string name;  // of the entry that it is part of or stored beside
  TensorView memory;
};

// How memory of a device is reached, by the numbers of DLPack.
struct DeviceAccess {
  int32_t device_type = 0;
  int32_t device_id = 0;
  std::shared_ptr<WindowAccess> access;  // co-owned with whoever lends the memory
};

class State {
 public:
  // Adds all or none. ALREADY_EXISTS for a name that is there (with both paths), INVALID_ARGUMENT
  // for invalid UTF-8, a name too long, negative boxes, pieces that leave the local tensor, a path
  // that joins to another name, fragments that divide no axis; OUT_OF_RANGE for a box that leaves
  // the global shape; UNIMPLEMENTED for a sub-byte piece that is not whole bytes;
  // RESOURCE_EXHAUSTED for an object above kMaxObjectBytes. A name belongs to one entry. Paths are
  // kept in canonical text. How a piece lies in the local tensor follows from the shapes
  // (PiecePlace): it is all of it, or a window of a local tensor of as many dimensions as the
  // global shape; both may be strided; otherwise it is the row-major run at its offset of a
  // contiguous local tensor; pieces with memory of their own are windows of that. Pieces come in
  // any order and may be empty. Many tensors come faster by TensorAdd.
  Status add_tensors(const std::vector<TensorEntry>& entries);
  Status add_objects(std::vector<ObjectEntry> entries);
  // Room for that many more tensors whose names have that many bytes in all: what comes in pieces
  // then moves no memory. RESOURCE_EXHAUSTED for more than a state may hold.
  Status reserve(size_t tensors, size_t name_bytes);
  // Kept until the state goes: called once with the state's end (DLPack deleters, host buffers).
  void add_keepalive(std::shared_ptr<void> owner);

  // Borrows the memory as a tensor does. Only loads look at it.
  void add_zeroed(ZeroedMemory zeroed) { zeroed_.push_back(std::move(zeroed)); }
  const std::vector<ZeroedMemory>& zeroed() const { return zeroed_; }

  // Tensors on that device are read and written by this access; where there is one already, by
  // that.
  void add_access(DeviceAccess access);
  const std::vector<DeviceAccess>& accesses() const { return accesses_; }
  // Null where there is none to where the tensor lies.
  WindowAccess* access_to(const TensorSpan& tensor) const;

  const TensorColumns& tensors() const { return tensors_; }
  const std::vector<ObjectEntry>& objects() const { return objects_; }
  // Index of the entry, or nullopt.
  std::optional<size_t> find_tensor(std::string_view name) const;
  std::optional<size_t> find_object(std::string_view name) const;
  // A load stores the bytes of object index here (exclusive).
  void replace_object(size_t index, std::string content_type, std::vector<std::byte> bytes);

  // Window of the memory of piece p of tensor t, shaped like the piece's box.
  Result<StridedWindow> piece_window(size_t tensor, size_t piece) const;

 private:
  friend class TensorAdd;

  // Enters the names of the entries from first on into the index; ALREADY_EXISTS without change.
  Status index_tensors(size_t first);
  Status index_objects(size_t first);

  TensorColumns tensors_;
  std::vector<ObjectEntry> objects_;
  HashIndex tensor_index_;
  HashIndex object_index_;
  std::vector<ZeroedMemory> zeroed_;
  std::vector<DeviceAccess> accesses_;            // of different devices: few
  std::vector<std::shared_ptr<void>> keepalive_;  // co-owned with whoever handed the memory in
};

// One bulk add of tensors that are described one after the other; the rules and failures are those
// of State::add_tensors. What was added goes again unless commit() succeeds. The state must not be
// touched in between.
class TensorAdd {
 public:
  // Room for that many tensors whose names have that many bytes in all: hints.
  TensorAdd(State* state, size_t tensors, size_t name_bytes);
  ~TensorAdd();
  TensorAdd(const TensorAdd&) = delete;
  TensorAdd& operator=(const TensorAdd&) = delete;

  // Copies what tensor borrows, the memory of the tensor itself aside.
  Status add(const TensorRef& tensor);
  Status commit();

 private:
  State* state_;
  TensorColumns::Mark begin_;
  bool committed_ = false;
};

}  // namespace shardwright
