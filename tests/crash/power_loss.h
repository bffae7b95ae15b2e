// SPDX-License-Identifier: Apache-2.0
//
// PowerLossModel: what a file system may hold when the power goes after some recorded calls.
//   data   what a file held at its last good sync is there; of each later write every 512-byte
//          sector is there or not, and the size is any that the file has had since. After a sync
//          that failed a later one proves nothing.
//   names  a name made, moved or removed is certain once its directory was synced, and reachable
//          when all names above it are there. Of the others the profile `ordered` keeps those up to
//          some moment; `weak` keeps any that make sense: a name must be there to be moved or
//          removed, and a directory is removed when it is empty.
// Which of the uncertain things took place is a choice: one bit per thing. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/crash/record.h"

namespace shardwright::crash {

// What a file holds: these bytes and zeros up to its size. Space that was only reserved costs
// nothing.
struct FileContent {
  std::string bytes;
  uint64_t size = 0;

  void write(uint64_t offset, std::string_view data);
  void resize(uint64_t new_size);
  bool operator==(const FileContent& other) const = default;
};
using FilePointer = std::shared_ptr<const FileContent>;

// What lies below the root: path to content; null for directories.
using FileTree = std::map<std::string, FilePointer>;

class PowerLossModel {
 public:
  PowerLossModel();
  void apply(const RecordedCall& call);
  // Uncertain things: names in the order of their calls, then data.
  size_t name_count() const { return pending_names_.size(); }
  size_t data_count() const;
  // The tree with these of them; the names come first.
  FileTree build(const std::vector<bool>& chosen) const;
  // The tree as the victims saw it.
  FileTree whole() const;

 private:
  struct Node;
  using NodePointer = std::shared_ptr<Node>;  // co-owned by the names, now and after a crash
  struct Change {                             // of a size when data is null
    uint64_t offset = 0;
    std::shared_ptr<const std::string> data;
  };
  struct Node {
    bool is_directory = false;
    std::map<std::string, NodePointer> live;     // names in this directory now
    std::map<std::string, NodePointer> durable;  // those that a crash cannot take
    FileContent content;                         // now
    FilePointer synced;                          // at the last good sync
    std::vector<Change> pending;                 // since then
    bool is_broken = false;                      // a sync of it has failed
    size_t number = 0;
  };
  // A name that is made (from empty), removed (to empty) or moved within or between directories.
  struct NameChange {
    NodePointer from_directory;
    std::string from;
    NodePointer to_directory;
    std::string to;
    NodePointer node;
  };
  using Names = std::map<const Node*, std::map<std::string, NodePointer>>;

  static size_t sector_count(const Change& change);
  NodePointer find(std::string_view path) const;
  NodePointer make(bool is_directory);
  void split(const std::string& path, NodePointer* directory, std::string* name) const;
  void write(const RecordedCall& call);
  void set_size(const RecordedCall& call);
  void sync_file(const RecordedCall& call);
  void sync_directory(const RecordedCall& call);
  void change_name(const RecordedCall& call);
  NodePointer file_of(const RecordedCall& call) const;
  static void take_place(const NameChange& change, Names* names);
  static FilePointer content_of(const Node& node, const std::vector<bool>& chosen, size_t first);
  static void collect(const Node& directory, const std::string& prefix, Names* names,
                      const std::map<const Node*, FilePointer>& contents, FileTree* tree);

  std::vector<NodePointer> nodes_;
  NodePointer root_;
  std::map<uint64_t, NodePointer> by_inode_;
  std::vector<NameChange> pending_names_;
};

}  // namespace shardwright::crash
