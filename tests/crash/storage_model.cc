// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/storage_model.h"

#include <algorithm>

namespace shardwright::crash {

void StorageModel::write(File* file, const LoggedCall& call) const {
  uint64_t at = call.offset;
  size_t done = 0;
  while (done < call.data.size()) {
    const uint64_t sector_end = (at / sector_bytes_ + 1) * sector_bytes_;
    const auto part = std::min<size_t>(call.data.size() - done, sector_end - at);
    const auto first = call.data.begin() + static_cast<ptrdiff_t>(done);
    file->pending.push_back({at, {first, first + static_cast<ptrdiff_t>(part)}});
    at += part;
    done += part;
  }
  file->size_bytes = std::max(file->size_bytes, at);
}

void StorageModel::sync(File* file) {
  file->durable.resize(static_cast<size_t>(file->size_bytes));
  for (const Write& write : file->pending) {
    for (size_t i = 0; i < write.data.size() && write.offset + i < file->durable.size(); ++i)
      file->durable[write.offset + i] = write.data[i];
  }
  file->pending.clear();
}

void StorageModel::sync_names(const std::string& prefix) {
  for (auto it = files_.begin(); it != files_.end();) {
    const bool below = it->first.starts_with(prefix + "/");
    if (below) it->second.name_durable = true;
    it = below && it->second.removed ? files_.erase(it) : std::next(it);
  }
}

void StorageModel::apply(const LoggedCall& call) {
  auto& table = in_flight_.contains(call.key) ? in_flight_ : files_;
  switch (call.operation) {
    case Operation::kOpen:
      if (call.mode == storage::OpenMode::kCreate) in_flight_[call.key] = {};
      if (call.mode == storage::OpenMode::kCreateVisible) files_[call.key];
      break;
    case Operation::kWrite:
      write(&table[call.key], call);
      break;
    case Operation::kTruncate:
      table[call.key].size_bytes = call.offset;
      break;
    case Operation::kSync:
      sync(&table[call.key]);
      break;
    case Operation::kSyncPrefix:
      sync_names(call.key);
      break;
    case Operation::kCommit: {
      File file = std::move(in_flight_[call.key]);
      in_flight_.erase(call.key);
      file.name_durable = true;
      files_[call.key] = std::move(file);
      break;
    }
    case Operation::kAbort:
      table.erase(call.key);
      break;
    case Operation::kRemove: {
      const auto found = files_.find(call.key);
      if (found != files_.end()) found->second.removed = true;
      break;
    }
    default:
      break;  // reading, listing, locks and durable prefixes leave no choice
  }
}

size_t StorageModel::atom_count() const {
  size_t count = 0;
  for (const auto& [key, file] : files_) {
    count += file.pending.size() + (file.has_size_choice() ? 1U : 0U) +
             (file.name_durable ? 0U : 1U) + (file.removed ? 1U : 0U);
  }
  for (const auto& [key, file] : in_flight_) count += 1 + file.pending.size();
  return count;
}

Tree StorageModel::build(const std::vector<bool>& present) const {
  Tree tree;
  size_t next = 0;
  const auto choice = [&] { return next < present.size() && present[next++]; };
  const auto content = [&](const File& file) {
    const bool full_size = file.has_size_choice() && choice();
    std::vector<std::byte> bytes = file.durable;
    if (full_size) bytes.resize(static_cast<size_t>(file.size_bytes));
    for (const Write& write : file.pending) {
      if (!choice()) continue;
      const uint64_t end = std::min(write.offset + write.data.size(), file.size_bytes);
      if (bytes.size() < end) bytes.resize(static_cast<size_t>(end));
      for (uint64_t at = write.offset; at < end; ++at) bytes[at] = write.data[at - write.offset];
    }
    return bytes;
  };
  for (const auto& [key, file] : files_) {
    const bool named = file.name_durable || choice();
    const bool removed = file.removed && choice();
    std::vector<std::byte> bytes = content(file);
    if (named && !removed) tree[key] = std::move(bytes);
  }
  for (const auto& [key, file] : in_flight_) {
    const bool named = choice();
    std::vector<std::byte> bytes;
    for (const Write& write : file.pending) {
      if (!choice()) continue;
      bytes.resize(std::max<size_t>(bytes.size(), write.offset + write.data.size()));
      std::ranges::copy(write.data, bytes.begin() + static_cast<ptrdiff_t>(write.offset));
    }
    if (file.pending.empty()) bytes = file.durable;
    // The temporary name carries a generation; which one does not matter to a reader.
    if (named) tree[key + ".0123456789abcdef0123456789abcdef"] = std::move(bytes);
  }
  return tree;
}

}  // namespace shardwright::crash
