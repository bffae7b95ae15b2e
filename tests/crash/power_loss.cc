// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/power_loss.h"

#include <algorithm>
#include <stdexcept>

#include "tests/crash/victim/seam.h"

namespace shardwright::crash {
namespace {

constexpr uint64_t kSectorBytes = 512;

}  // namespace

void FileContent::write(uint64_t offset, std::string_view data) {
  if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size(), '\0');
  bytes.replace(offset, data.size(), data);
  size = std::max<uint64_t>(size, bytes.size());
}

void FileContent::resize(uint64_t new_size) {
  if (bytes.size() > new_size) bytes.resize(new_size);
  size = new_size;
}

PowerLossModel::PowerLossModel() {
  root_ = make(true);
}

PowerLossModel::NodePointer PowerLossModel::make(bool is_directory) {
  auto node = std::make_shared<Node>();
  node->is_directory = is_directory;
  node->synced = std::make_shared<const FileContent>();
  node->number = nodes_.size();
  nodes_.push_back(node);
  return node;
}

PowerLossModel::NodePointer PowerLossModel::find(std::string_view path) const {
  NodePointer node = root_;
  while (node != nullptr && !path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const auto found = node->live.find(std::string(path.substr(0, slash)));
    node = found == node->live.end() ? nullptr : found->second;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return node;
}

void PowerLossModel::split(const std::string& path, NodePointer* directory,
                           std::string* name) const {
  const size_t slash = path.rfind('/');
  *directory = find(slash == std::string::npos ? "" : std::string_view(path).substr(0, slash));
  *name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (*directory == nullptr) throw std::runtime_error("no directory holds " + path);
}

PowerLossModel::NodePointer PowerLossModel::file_of(const RecordedCall& call) const {
  const auto found = by_inode_.find(call.inode);
  if (found == by_inode_.end()) throw std::runtime_error("never made: " + call.path);
  return found->second;
}

void PowerLossModel::apply(const RecordedCall& call) {
  switch (call.kind) {
    case SEAM_WRITE:
      return write(call);
    case SEAM_SET_SIZE:
      return set_size(call);
    case SEAM_SYNC_FILE:
      return sync_file(call);
    case SEAM_SYNC_DIRECTORY:
      return sync_directory(call);
    case SEAM_MARK:
      return;
    default:
      return change_name(call);
  }
}

void PowerLossModel::write(const RecordedCall& call) {
  const NodePointer node = file_of(call);
  const uint64_t size_before = node->content.size;
  node->content.write(call.offset, *call.data);
  node->pending.push_back({call.offset, call.data});
  if (node->content.size > size_before) node->pending.push_back({node->content.size, nullptr});
}

void PowerLossModel::set_size(const RecordedCall& call) {
  const NodePointer node = file_of(call);
  node->content.resize(call.offset);
  node->pending.push_back({call.offset, nullptr});
}

void PowerLossModel::sync_file(const RecordedCall& call) {
  const NodePointer node = file_of(call);
  node->is_broken = node->is_broken || call.error != 0;
  if (node->is_broken) return;
  node->synced = std::make_shared<const FileContent>(node->content);
  node->pending.clear();
}

void PowerLossModel::sync_directory(const RecordedCall& call) {
  const NodePointer directory = find(call.path);
  if (directory == nullptr || call.error != 0) return;  // removed meanwhile
  std::vector<NameChange> left;
  for (const NameChange& change : pending_names_) {
    if (change.from_directory != directory && change.to_directory != directory) {
      left.push_back(change);
      continue;
    }
    if (change.from_directory != nullptr) change.from_directory->durable.erase(change.from);
    if (change.to_directory != nullptr) change.to_directory->durable[change.to] = change.node;
  }
  pending_names_ = std::move(left);
}

void PowerLossModel::change_name(const RecordedCall& call) {
  NameChange change;
  const bool makes = call.kind == SEAM_CREATE || call.kind == SEAM_MAKE_DIRECTORY;
  if (call.kind == SEAM_RENAME || call.kind == SEAM_REMOVE) {
    split(call.path, &change.from_directory, &change.from);
    change.node = find(call.path);
  }
  if (makes) {
    split(call.path, &change.to_directory, &change.to);
    change.node = make(call.kind == SEAM_MAKE_DIRECTORY);
    if (call.kind == SEAM_CREATE) by_inode_[call.inode] = change.node;
  } else if (call.kind != SEAM_REMOVE) {
    split(call.second, &change.to_directory, &change.to);
    change.node = find(call.path);
  }
  if (change.node == nullptr) throw std::runtime_error("no such name: " + call.path);
  if (change.from_directory != nullptr) change.from_directory->live.erase(change.from);
  if (change.to_directory != nullptr) change.to_directory->live[change.to] = change.node;
  pending_names_.push_back(std::move(change));
}

// A write is one thing per sector that it touches, a change of size is one.
size_t PowerLossModel::sector_count(const Change& change) {
  if (change.data == nullptr) return 1;
  if (change.data->empty()) return 0;
  const uint64_t last = (change.offset + change.data->size() - 1) / kSectorBytes;
  return static_cast<size_t>(last - change.offset / kSectorBytes + 1);
}

size_t PowerLossModel::data_count() const {
  size_t count = 0;
  for (const NodePointer& node : nodes_) {
    for (const Change& change : node->pending) count += sector_count(change);
  }
  return count;
}

FilePointer PowerLossModel::content_of(const Node& node, const std::vector<bool>& chosen,
                                       size_t first) {
  if (node.pending.empty()) return node.synced;
  FileContent content = *node.synced;
  uint64_t size = content.size;
  for (const Change& change : node.pending) {
    if (change.data == nullptr) {
      if (chosen[first++]) {
        size = change.offset;
        content.resize(size);
      }
      continue;
    }
    uint64_t at = 0;
    while (at < change.data->size()) {
      const uint64_t sector = (change.offset + at) / kSectorBytes;
      const uint64_t end =
          std::min<uint64_t>(change.data->size(), (sector + 1) * kSectorBytes - change.offset);
      if (chosen[first++])
        content.write(change.offset + at, std::string_view(*change.data).substr(at, end - at));
      at = end;
    }
  }
  content.resize(size);
  return std::make_shared<const FileContent>(std::move(content));
}

// A name that cannot be changed like this, because an earlier change is not there, stays as it is.
void PowerLossModel::take_place(const NameChange& change, Names* names) {
  if (change.from_directory != nullptr) {
    auto& held = (*names)[change.from_directory.get()];
    const auto found = held.find(change.from);
    if (found == held.end() || found->second != change.node) return;
    const bool is_removed = change.to_directory == nullptr;
    if (is_removed && change.node->is_directory && !(*names)[change.node.get()].empty()) return;
    held.erase(change.from);
  }
  if (change.to_directory != nullptr) (*names)[change.to_directory.get()][change.to] = change.node;
}

void PowerLossModel::collect(const Node& directory, const std::string& prefix, Names* names,
                             const std::map<const Node*, FilePointer>& contents, FileTree* tree) {
  for (const auto& [name, node] : (*names)[&directory]) {
    const std::string path = prefix + name;
    (*tree)[path] = node->is_directory ? nullptr : contents.at(node.get());
    if (node->is_directory) collect(*node, path + "/", names, contents, tree);
  }
}

FileTree PowerLossModel::build(const std::vector<bool>& chosen) const {
  Names names;
  for (const NodePointer& node : nodes_) names[node.get()] = node->durable;
  for (size_t i = 0; i < pending_names_.size(); ++i) {
    if (chosen[i]) take_place(pending_names_[i], &names);
  }
  std::map<const Node*, FilePointer> contents;
  size_t first = pending_names_.size();
  for (const NodePointer& node : nodes_) {
    contents[node.get()] = content_of(*node, chosen, first);
    for (const Change& change : node->pending) first += sector_count(change);
  }
  FileTree tree;
  collect(*root_, "", &names, contents, &tree);
  return tree;
}

FileTree PowerLossModel::whole() const {
  return build(std::vector<bool>(name_count() + data_count(), true));
}

}  // namespace shardwright::crash
