// SPDX-License-Identifier: Apache-2.0
//
// StorageModel: what may be left of a storage after a crash. It is fed with the calls of a save in
// their order, and gives the legal states at that point. It keeps to less than storages promise, so
// that each sync of the protocol is needed:
//   - bytes written since the last sync of their object are there or not sector by sector (missing
//     ones are zero); the length is that of the present sectors or the one that was reached;
//   - the name of a visible object is there or not until its prefix is synced;
//   - a removal has taken place or not until its prefix is synced;
//   - an object in flight (a manifest before its commit) may be there under its temporary name;
//   - commit is atomic and makes the name durable, but not bytes that were not synced before.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/storage/backends.h"

namespace shardwright::crash {

using Operation = storage::StorageEvent::Operation;

struct LoggedCall {
  Operation operation = Operation::kOpen;
  std::string key;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  std::vector<std::byte> data;
  storage::OpenMode mode = storage::OpenMode::kRead;
  bool commits = false;  // what is stored is another checkpoint from here on
};

using Tree = std::map<std::string, std::vector<std::byte>>;

class StorageModel {
 public:
  explicit StorageModel(uint64_t sector_bytes) : sector_bytes_(sector_bytes) {}

  void apply(const LoggedCall& call);
  // Number of things that a crash now may leave undone; build takes one choice for each.
  size_t atom_count() const;
  Tree build(const std::vector<bool>& present) const;

 private:
  struct Write {
    uint64_t offset;
    std::vector<std::byte> data;
  };
  struct File {
    std::vector<std::byte> durable;
    std::vector<Write> pending;  // sectors since the last sync
    uint64_t size_bytes = 0;     // reached
    bool name_durable = false;
    bool removed = false;  // not durably
    bool has_size_choice() const { return size_bytes != durable.size(); }
  };

  void write(File* file, const LoggedCall& call) const;
  static void sync(File* file);
  void sync_names(const std::string& prefix);

  uint64_t sector_bytes_;
  std::map<std::string, File> files_;      // visible
  std::map<std::string, File> in_flight_;  // invisible until commit, by the key they are for
};

}  // namespace shardwright::crash
